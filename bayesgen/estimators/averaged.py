"""The averaged classifier: probabilities from many conjugate models at once, chosen by exact leave-one-out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayesgen.averaging import completion, families
from bayesgen.averaging.learning import fit_average
from bayesgen.core import registry
from bayesgen.core.errors import DataError, listed
from bayesgen.estimators import averaged_settings
from bayesgen.estimators.averaged_learning import LearnsOn, kept
from bayesgen.estimators.estimator import Held, asks, held, score
from bayesgen.estimators.settings import class_prior
from bayesgen.estimators.workers import stages
from bayesgen.inspection.explain import explain
from bayesgen.inspection.members import FittedAverage, summary, to_arviz
from bayesgen.models.column_families import sparse_families
from bayesgen.numerics.draws import generator
from bayesgen.tables import arrays
from bayesgen.tables.findings import Finding, tell
from bayesgen.tables.learned_rows import LearnedRows

_FROM_ROWS = (
    "bends, components, exponents and weights are learned from rows, not from sums. Of rows that no memory holds give "
    "fit a sample of thousands, stratified by class, and priors=, the frequencies of the classes"
)
_ABSENT = {  # attributes of other classifiers, and why this one lacks them
    **dict.fromkeys(("fit_batches", "fit_statistics", "row_schema"), _FROM_ROWS),
    "leave_one_out": "its fit left rows out, and scores_ tells their score; compare() scores each row by others",
    "log_evidence_": "tempered members have no joint density, and priors and bends follow the data",
}


@registry.estimator
@dataclass(eq=False, repr=False)
class AveragedClassifier(ClassifierMixin, LearnsOn):
    """The average of conjugate generative and other classifiers, tempered, weighted by stacking on rows left out.

    The members model the classes differently: as Gaussians with full, shared, diagonal or shared diagonal covariances
    under priors of several strengths; as mixtures of 2 to 8 of these; as categories that are independent or depend on
    one another; as products of both for mixed tables; and by the class prior alone. Beside them stand penalised softmax
    regressions; from six columns on, "screened" members, which take only the columns that separate the classes best;
    "coded" members, which take numbers of up to ten values as categories; and, for classes that begin at a threshold or
    follow rules, a random forest and, from 100 rows on, boosted trees, which of two classes and from 1,000 rows on
    split by weighted sums of the numbers too.
    Numeric columns are bent towards normality within the classes (Yeo-Johnson). Nothing needs tuning.

    A column, or a block of columns, may have a leaf of its own, which is then a factor of every generative member.

    Parameters
    ----------
    weights : {"stacking", "evidence"}, default "stacking"
        Weights of the members. "stacking" maximises the leave-one-out log score of the average; the class prior alone
        gets more of it, the less the nested score gains on it, see ``scores_``. "evidence" weighs each member by its
        evidence, untempered (Bayesian model averaging, over the members that have an evidence: one component per class,
        independent categories).
    bend : bool, default True
        True to bend numeric columns; False to standardise them only.
    wild : {"complete", "keep"}, default "complete"
        "keep" to learn from wild entries as they are, where they are told and known to be right; see below.
    members : {"all", "generative"} or list, default "all"
        The members that take part; "all" leaves out "mixture", "screened" and "coded" members of two classes with fewer
        than 30 rows in all, for which they buy nothing. "generative" are those that have a density of a row, which
        questions about missing entries, typicality and new rows need. A list is the pool of "all", "generative", names
        of families ("gaussian", "mixture", the Gaussians in several components per class, which take much of the time,
        "category", "softmax", "screened", "coded", "forest", "boosted"), and pairs (name, classifier) of any
        scikit-learn classifier with ``predict_proba``: it is cloned, judged by five folds of rows and fitted to all,
        gets the rows as they are given (others are rebuilt in the same types), and ``sample_weight`` where it takes
        one. Its settings are set as ``name__setting``.
    class_concentration : float, array of shape (K,), or mapping or Series from class to float, default 1.0
        Dirichlet concentration of the class probabilities.
    priors : array, shape (K,), or mapping or Series from class to float, optional
        Class probabilities of the population to decide for. They change no member, exponent or weight: the averaged
        probability is multiplied by their ratio to the learned ones.
    unseen : {"missing", "error"}, default "missing"
        Treatment of a category at prediction that was not there at fit: integrated out, with one warning that counts
        and names such values, or refused.
    features : str or mapping, default "auto"
        As in `NaiveBayesClassifier`: "auto", one name for all columns, or a mapping from column (or tuple of columns)
        to a name, a leaf or "drop". "gaussian" and "date" columns are numbers, and "categorical" and "bernoulli"
        columns categories, which all members take as by "auto". A column of "poisson" (counts), "log", "log1p", of
        a bag of words ("multinomial"), or with a leaf such as ``GammaPoisson(2, 1)``, conjugate and perhaps your own,
        has that leaf in every generative member: independent of other columns given the class, not bent, and tempered
        with the member. The members without a density, such as the softmax regressions, leave such columns out.
    random_state : int, RandomState or None, default 0
        Source of randomness of the forest, of samples of many rows, and of draws; folds are always the same. The same
        rows in any order, with their columns in any order and their classes under any names, give the same fit under
        the same int (beyond 5,000 rows the order of the rows counts).
    progress : bool, optional
        True to show a bar when the fit takes more than two seconds; by default where the standard error is a terminal.
    keep_rows : bool, default False
        True to keep the rows, in files too, for ``refit()`` of all rows that were learned so far; ``forget`` then fits
        anew to those that stay.

    Attributes
    ----------
    classes_ : array, shape (K,)
        Class labels.
    schema_ : Schema
        Types and categories of the columns.
    constant_ : dict from str to float
        Columns that hold one value or none, and are left out, with the value (of categories its place among them) or
        NaN; not those with a leaf of their own.
    average_ : Average
        The members with their statistics, exponents and weights, and ``sharpening``, the exponent of the average.
    members_ : list of Product or Member
        A product has ``factors``, the members that it is a product of (of the numeric columns, of the categorical
        ones, or none), and ``leaves``, the names of the columns with leaves of their own that multiply them.
    exponents_, weights_ : array, shape (M,)
        Exponent and weight of each member.
    scores_ : dict
        Weighted mean log scores of rows left out: "members" (M,), each tempered; "average", under ``exponents_`` and
        ``weights_``, which follow these scores; "nested", under exponents and weights chosen by other rows, before the
        class prior gets more; both of these sharpened; "base_rate", of the class prior. "nested_error" is the standard
        error of "nested" as what new rows will score, "classes" says whether the classes were "drawn" with the rows or
        "chosen" (see Notes), "rows" is the number of rows left out, "learned" (M,) the number of rows that each member
        learned from, "as of" (M,), where it learned on, the row as of which each is, "repeats" the share of rows that
        repeat another, and "leaving" what leaves with a row: "rows", "rows that weights count" where all weights are
        whole, and "whole rows" where they are not.

    Notes
    -----
    A row is a row, and leaves as one, whatever rows agree with it. Weights that are all whole are counts: the fit is
    that of the rows written out, each as often as it counts. If any weight is not whole, every row leaves with all of
    its weight, and n rows are worth (Σ w)²/Σ w²: so many decide which members there are, how far they are trusted, and
    how sure the score is. Where a class has fewer than ten rows for each numeric column, a row leaves together with
    one row of each other class. Copies of rows leave together, with a warning. They are rows that repeat another, class
    and all, at least a twentieth, which rows of neighbouring values and of other classes do not explain
    (`bayesgen.tables.repeats`). Scores are told under class
    probabilities without the row alone, as new rows will meet them; where classes are more equal in size than drawing
    rows makes them (χ² below its 1 % point), as many of each were taken as were wanted, and they are told without all
    rows that leave together. A part of a larger sample that was stratified by unequal sizes shows in no count. A row
    alone of its class stands for new rows of classes that no row has; those of known classes score better. A row stays
    in a group of more than 4,000 rows per column, where it would hardly be missed. Beyond 4,000 rows (fewer with many
    columns or classes) only a stratified sample is left out. Beyond 5,000, bends and components are learned once and
    not in each fold, and beyond 20,000 from a stratified sample; softmax regressions and trees learn from up to 100,000
    rows, and a tree is grown on fewer the more there are. Missing entries are integrated out at prediction; at fit a
    full covariance has no conjugate posterior given rows with gaps, and takes expected statistics
    (`bayesgen.averaging.view`).

    An entry of the rows of fit that is 300 times and more as far from the median of its column as the others, one of at
    most three or a hundredth of the rows, is told by a warning, and its conditional expectation given class and row is
    learned from in its place (`bayesgen.tables.wild`); only classifiers of your own see it as it is.

    Beyond 100 numeric columns there is one component per class. Up to 1,000 rows, full and shared covariances are
    worked out in the coordinates that the rows span (`bayesgen.averaging.wide`); questions that draw rows or entries
    take the members with independent columns. There gaps at fit are filled by the means of the class, with a warning.
    Boosted trees take at most 2,000 columns, and forests of a category of more than 1,000 levels those that a hundredth
    of the rows have. A table that memory does not hold is refused before anything is learned.

    ``partial_fit`` learns on from rows that came later: members that are sums as exactly as a fit of all rows under the
    bends, components and columns of the first, others not at all (`docs/mathematics/averaged.md`, "Learning on"). The
    package's own members are fitted in one process: much of that is small array
    operations that hold Python's lock; `joblib` or scikit-learn can run several fits side by side.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = AveragedClassifier().fit(X[::3], y[::3])
    >>> round(classifier.score(X[1::3], y[1::3]), 2)
    0.92

    Visits are counts, and the bill is skewed:

    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = pd.DataFrame({"age": rng.normal(50 + 5 * y, 9), "visits": rng.poisson(1 + 3 * y), "bill": rng.lognormal(y)})
    >>> classifier = AveragedClassifier(features={"visits": "poisson", "bill": "log"}).fit(X, y)
    >>> round(classifier.score(X, y), 2)
    0.9
    """

    fitted_ = Held(FittedAverage, (), optional=("stream_",))

    weights: str = "stacking"
    members: str | Sequence[Any] = "all"
    bend: bool = True
    wild: str = "complete"
    class_concentration: ArrayLike = 1.0
    priors: ArrayLike | None = None
    unseen: str = "missing"
    features: str | Mapping[Any, Any] = "auto"
    random_state: Any = 0
    progress: bool | None = None
    keep_rows: bool = False

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name):
            if name in _ABSENT:
                raise AttributeError(f"{type(self).__name__} has no {name}: {_ABSENT[name]}")
            if name[0] != "_" and name[-1] == "_":
                check_is_fitted(self)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def fit(self, X, y, sample_weight=None, groups=None, *, classes=None, label_weight=None) -> Self:
        """Learn from rows and their classes.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Numbers, bools and categories; NaN, None or NA where missing.
        y : array, shape (n,), or array or DataFrame, shape (n, K)
            Class labels; or the share of each class, of raters, votes or another model, that sum to 1 in a row.
        sample_weight : array, shape (n,), optional
            Row weights >= 0. If all are whole a row is there as often as it weighs, else it leaves with all its weight.
        groups : array, shape (n,), optional
            Label of what a row belongs to, where rows belong together: a patient, a batch, a day. Rows of one group are
            left out together, so that exponents and weights suit rows of new groups. A row whose label is missing
            stands for itself. Without groups, copies of rows leave together (see Notes); under ``range(n)`` none do.
        classes, label_weight : optional
            As in `NaiveBayesClassifier.fit`. A row leaves with all its shares: none predicts its own other half.
        """
        averaged_settings.check_settings(self)
        with self._whole():
            rows = LearnedRows.read(self.table(X, reset=True), y, sample_weight, groups, classes, label_weight)
            found = self._learn(rows)
            self.schema_ = self.schema_.of_target(y)
        tell(found)
        return self

    def _learn(self, learned: LearnedRows) -> list[Finding]:
        learned, leaving, counted = averaged_settings.written_out(learned)
        self.classes_ = learned.classes
        class_prior(self, self.priors)  # or raise
        concentration = np.array(class_prior(self, None).alpha)
        if not (blocks := learned.blocks):
            self.schema_, blocks = arrays.learned(learned.table, self.features)
        learned, self.constant_ = replace(learned, blocks=blocks), arrays.constant(self.schema_, blocks)
        given = averaged_settings.given_members(self, learned)
        rows, wild = averaged_settings.member_rows(self, learned, counted)
        rows, places, repeats = averaged_settings.leaving_together(learned, rows)
        leaves = averaged_settings.learn_leaves(self, rows)
        try:
            overflow = np.errstate(over="ignore", invalid="ignore")  # of far values, which are refused below
            with overflow, stages("averaging", self.progress) as stage:
                self.average_, self.scores_, self.stream_ = fit_average(
                    rows,
                    method=self.weights,
                    bend=self.bend,
                    families=families.chosen(self.members),
                    pairs=families.pairs(self.members),
                    given=given,
                    concentration=concentration,
                    seed=int(generator(self.random_state).integers(1 << 31)),
                    leaves=leaves,
                    stage=stage,
                )
        except (np.linalg.LinAlgError, DataError):
            completion.refuse_far(rows.x, arrays.numbers(self.schema_, self.constant_), places)
            raise
        if self.keep_rows:
            self.stream_ = replace(self.stream_, kept=kept(learned), begun=len(learned.codes))
        self.scores_ |= {"repeats": repeats.count / repeats.rows, "leaving": leaving}
        return [*wild, *averaged_settings.findings_of_fit(self, learned, rows, repeats)]

    members_ = held("average_.members", "The members: products of numbers and categories, and of the whole table.")
    weights_ = held("average_.weights", "Weight of each member.")
    exponents_ = held("average_.exponents", "Exponent of each member.")
    posterior_ = held("posterior_", "The average under ``priors``, or under the learned class probabilities.")

    def get_params(self, deep: bool = True) -> dict:
        """Return parameters by name; with ``deep`` the user's own members, and their settings: ``name__setting``."""
        params = super().get_params(deep)
        for name, estimator in families.pairs(self.members) if deep else ():
            params |= {name: estimator} | {f"{name}__{key}": v for key, v in estimator.get_params().items()}
        return params

    def set_params(self, **params):
        """Set parameters, among them members of the user's by name, and settings within them: ``name__setting``."""
        if "members" in params:
            self.members = params.pop("members")
        given = dict(families.pairs(self.members))
        for key in [key for key in params if key.partition("__")[0] in given]:
            name, _, setting = key.partition("__")
            value = params.pop(key)
            if setting:
                given[name].set_params(**{setting: value})
            else:
                self.members = [(name, value) if pair == (name, given[name]) else pair for pair in self.members]
                given[name] = value
        return super().set_params(**params)

    def save(self, path) -> None:
        """Write the fitted classifier to a file that `bayesgen.load` reads back; see `Estimator.save`.

        Members that the user passed are not of this package, and no file that runs no code can hold them.

        Parameters
        ----------
        path : str or Path
            The file; one of that name is replaced.
        """
        if given := [name for name, _ in families.pairs(self.members)]:
            raise TypeError(
                f"members {listed(given)} are your own, and save() writes only what is of bayesgen: keep this "
                "classifier by joblib.dump, or fit it without them"
            )
        super().save(path)

    predict_proba, predict_log_proba = asks(FittedAverage.predict_proba), asks(FittedAverage.predict_log_proba)
    predict, predict_joint_log_proba = asks(FittedAverage.predict), asks(FittedAverage.predict_joint_log_proba)
    sample, score, score_samples = asks(FittedAverage.sample), score, asks(FittedAverage.score_samples)
    explain, summary, to_arviz = explain, summary, to_arviz  # documented in `bayesgen.inspection`

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = not isinstance(self.features, str) or self.features in sparse_families()
        return tags
