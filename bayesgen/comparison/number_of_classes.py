"""Comparison of numbers of classes that nobody named."""

from collections.abc import Callable, Iterable

from bayesgen.estimators.class_numbers import ClassNumbers, judged
from bayesgen.estimators.latent import LatentClassClassifier
from bayesgen.numerics.checks import check_count


def compare_classes(
    X,
    numbers: Iterable[int] = range(1, 8),
    model: str = "naive bayes",
    *,
    folds: int = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    **settings,
) -> ClassNumbers:
    """Compare numbers of classes that nobody named, by rows left out and by evidence.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
        Rows, NaN, None or NA where missing.
    numbers : iterable of int
        Numbers of classes.
    model : {"naive bayes", "discriminant"}
        As for `LatentClassClassifier`.
    folds : int
        Number of folds. Each holds out every row once.
    seed : int
        Of folds, starts and draws: the same for every number of classes.
    n_jobs : int, optional
        Number of processes, -1 for all cores.
    progress : callable, optional
        ``progress(done, total, text)`` is called after each fit.
    **settings
        Other settings of `LatentClassClassifier`: ``features``, ``covariance``, ``prior``, ``starts``, ....

    Returns
    -------
    ClassNumbers
        Its `table`, its `sentence`, the `best` number, and the `fits`. `bayesgen.plot.class_numbers` draws it.

    Raises
    ------
    ValueError
        If no number of classes can be fitted. One that cannot has NaN in the table, and a remark.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4.0, 1.0, 30), rng.normal(4.0, 1.0, 50)])[:, None]  # two humps
    >>> compare_classes(X, (1, 2, 3), starts=3).best
    2
    """
    if "sample_weight" in settings:
        raise TypeError("compare_classes() takes no sample_weight: its errors count rows; repeat rows of whole weights")
    numbers = sorted(set(numbers))
    for number in numbers:
        check_count("numbers", number)
    if not numbers:
        raise ValueError("numbers must hold one number of classes at least")
    estimators = {k: LatentClassClassifier(model, classes=k, random_state=seed, **settings) for k in numbers}
    return judged(estimators, X, folds, seed, n_jobs, progress)
