r"""Members that the user passes: any classifier with ``predict_proba``, judged by the folds of the average.

With p(k | x) from the classifier and π the class frequencies of the rows that it was fitted to, log p(k | x) - log π
takes the place of log p(x | k). It is cloned for each fold and for all rows, and gets the rows as the user gave them.
Later rows, and rows with an entry taken away, are rebuilt from their entries; where the classifier takes no gaps, with
medians and most frequent categories in them. What it returns is checked: at the fit, a classifier whose probabilities
are none is left out with a warning; later, an error names it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from bayesgen.averaging.given import Shape
from bayesgen.averaging.member import FittedMembers, Member
from bayesgen.averaging.rows import Rows, log_frequencies, without_entries
from bayesgen.core.errors import warn

_FOLDS = 5
_LEAST = 1e-12  # of a probability: its logarithm is finite
_OFF = 1e-3  # by which a sum of probabilities, perhaps of float32, may miss 1


@dataclass(frozen=True, eq=False)
class OutsideMember(Member):
    """A classifier of the user's.

    Attributes
    ----------
    own : str
        The name that the user gave it.
    estimator : estimator
        The classifier, which is not fitted itself.
    """

    outside: ClassVar = True

    own: str
    estimator: Any

    @property
    def family(self) -> str:
        return self.own

    @classmethod
    def propose(cls, rows, setting):
        """Propose what the user passed, each by itself."""
        return [(cls(own, estimator),) for own, estimator in setting.pairs]

    @classmethod
    def fit(cls, groups, training):
        """Fit each to the rows as they were given."""
        return [OutsideMembers.of(member, training.rows, training.given, training.seed) for (member,) in groups]

    @classmethod
    def fit_each(cls, groups, trainings):
        """Fit the one member to several trainings, side by side where the user asks for it."""
        ((member,),), every = groups, list(trainings)
        fits: Any = Parallel(n_jobs=every[0].jobs)(
            delayed(OutsideMembers.of)(member, own.rows, own.given, own.seed) for own in every
        )
        return [[part] for part in fits]

    @classmethod
    def fit_and_leave_out(cls, groups, training, out, fold):
        """Fit each to all rows and without each of five folds; one that fails is left out with a warning."""
        fitted, density = [], []
        for group in groups:
            try:
                part, own = super().fit_and_leave_out([group], training, out, fold % _FOLDS)
            except Exception as error:  # whatever a classifier of the user's may raise
                warn(f"member {group[0].own!r} failed and takes no part: {type(error).__name__}: {error}")
            else:
                fitted, density = [*fitted, *part], [*density, *own]
        weighted = training.given is not None and training.given.weight is not None
        if deaf := [part.members[0].own for part in fitted if weighted and not _weighs(part.estimator)]:
            warn(f"members {deaf} take no sample_weight: all rows count the same for them")
        return fitted, density

    def settings(self):
        return {"kind": self.own}


@dataclass(frozen=True, eq=False)
class OutsideMembers(FittedMembers):
    """A classifier of the user's, fitted.

    Attributes
    ----------
    members : tuple of OutsideMember
        The one member.
    estimator : estimator
        The fitted classifier.
    place : int array, shape (k,)
        The class of each of its columns.
    shape : Shape
        What rows are rebuilt by.
    middle : tuple of array, or None
        Numbers (D,) and categories (F,) in place of gaps, if the classifier takes none.
    log_prior : array, shape (K,)
        Log class frequencies.
    rows : int
        Distinct rows of the fit.
    """

    members: tuple[OutsideMember, ...]
    estimator: Any
    place: np.ndarray
    shape: Shape
    middle: tuple[np.ndarray, np.ndarray] | None
    log_prior: np.ndarray
    rows: int

    @classmethod
    def of(cls, member: OutsideMember, rows: Rows, given: Any, seed: int) -> "OutsideMembers":
        """Fit a clone of the member to rows as they were given."""
        estimator: Any = clone(member.estimator)
        for key, value in estimator.get_params().items():
            if value is None and key.split("__")[-1] == "random_state":
                estimator.set_params(**{key: int(seed) % (1 << 31)})
        weighs = given.weight is not None and _weighs(estimator)
        estimator.fit(given.table.native, given.labels, **({"sample_weight": given.weight} if weighs else {}))
        code = {label: k for k, label in enumerate(given.classes.tolist())}
        place = np.array([code[label] for label in np.asarray(estimator.classes_).tolist()])
        codes = [code[label] for label in given.labels.tolist()]
        log_prior = log_frequencies(codes, given.weight if weighs else None, len(code))
        shape = given.shape()
        gap = np.full((1, rows.x.shape[1]), np.nan), np.full((1, rows.c.shape[1]), -1)
        try:
            estimator.predict_proba(shape.rebuilt(*gap))
            middle = None
        except Exception:  # what a classifier raises where it takes no gaps is its own
            modes = [np.bincount(own[own >= 0], minlength=1).argmax() for own in rows.c.T]
            middle = np.nanmedian(rows.x, axis=0), np.array(modes, np.intp)
        return cls((member,), estimator, place, shape, middle, log_prior, len(rows))

    @property
    def least(self) -> float:
        return 0.5 * len(self.log_prior) / self.rows

    def log_density(self, x, c, used) -> np.ndarray:
        nothing = without_entries(x, c)
        if self.middle is not None:
            x, c = np.where(np.isnan(x), self.middle[0], x), np.where(c < 0, self.middle[1], c)
        probability = np.zeros((len(x), len(self.log_prior)))
        if len(x):
            found = self.estimator.predict_proba(self.shape.rebuilt(x, c))
            probability[:, self.place] = _checked(found, (len(x), len(self.place)), self.members[0].own)
        result = np.log(np.maximum(probability, _LEAST)) - self.log_prior
        result[nothing] = 0.0
        return np.repeat(result[None], len(used), axis=0)


def _checked(found, shape: tuple[int, int], name: str) -> np.ndarray:
    """Return what a classifier gives as probabilities (n, K) that sum to 1, or raise an error that names it."""
    result = np.asarray(found, float)
    wrong = None
    if result.shape != shape:
        wrong = f"has the shape {result.shape}, where there are {shape[0]} rows and {shape[1]} classes"
    elif not np.isfinite(result).all():
        wrong = "is not finite"
    elif (result < 0).any():
        wrong = f"has the entry {result.min():.3g} below 0"
    elif (off := np.abs(result.sum(1) - 1)).max() > _OFF:
        wrong = f"sums to {result[off.argmax()].sum():.6g} in a row, not to 1"
    if wrong:
        raise ValueError(f"predict_proba of member {name!r} {wrong}")
    return result / result.sum(1, keepdims=True)


def _weighs(estimator) -> bool:
    return has_fit_parameter(estimator, "sample_weight")
