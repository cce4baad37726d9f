"""Settings of the classifiers, checked: priors of classes, labels and columns, given statistics; warnings of a fit."""

import functools
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from bayesgen.averaging import columns, families
from bayesgen.averaging.leaves import Leaves
from bayesgen.averaging.rows import Rows
from bayesgen.core.errors import listed, warn
from bayesgen.inference import Laplace, resolve
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    KnownCategorical,
    LabelNoise,
    LogNormal,
    NaiveBayes,
    NormalInverseGamma,
    ReferenceGaussian,
    ReferencePoisson,
)
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.leaf import ExponentialFamily
from bayesgen.models.structures import WeakGaussian, WeakLogGaussian, WeakPoisson
from bayesgen.numerics.checks import check_flag
from bayesgen.tables.groups import warn_of_names, warn_of_undivided
from bayesgen.tables.rows import fingerprint
from bayesgen.tables.schema import GAUSSIAN, Block

DOUBTED = "rows whose label may be wrong have no sums that add: give all of them to fit"
_SMALLEST = 1e-150  # squares of smaller values lose digits, or all of them
_REPEATS = 0.5  # share of repeats to warn of
_VALUES = 20  # of a number; a table whose numbers all have fewer has repeats by chance


def chosen_by_loo(classifier) -> list[str]:
    """Return the names of the parameters that leave-one-out chooses."""
    return [name for name in ("exponent", "prior") if isinstance(v := getattr(classifier, name, 1), str) and v == "loo"]


def sums_suffice(classifier) -> bool:
    """Return True if a fit needs statistics alone; else raise AttributeError: there is no ``partial_fit``."""
    for name in chosen_by_loo(classifier):
        raise AttributeError(f"{name}='loo' is chosen by leaving out rows: give all of them to fit")
    if classifier.label_noise is not None:
        raise AttributeError(DOUBTED)
    if classifier.unlabelled != "error":
        raise AttributeError("rows without a label have no sums that add: give all rows to fit, or unlabelled='error'")
    return True


def class_prior(classifier) -> DirichletCategorical | KnownCategorical:
    """Return the prior of the classes that ``priors`` or ``class_concentration`` gives."""
    if classifier.priors is not None:
        return known_classes(classifier.priors, classifier.classes_)
    try:
        return DirichletCategorical(classifier.class_concentration, classifier.classes_.tolist())
    except (TypeError, ValueError) as error:
        raise type(error)(f"class_concentration: {error}") from None


def known_classes(priors, classes) -> KnownCategorical:
    """Return the known class probabilities ``priors``, one for each of ``classes``, or raise."""
    labels = classes.tolist()
    if np.shape(priors) != (len(labels),):
        raise ValueError(f"priors must hold one probability for each of the {len(labels)} classes {listed(labels)}")
    try:
        return KnownCategorical(priors, labels)
    except (TypeError, ValueError) as error:
        raise type(error)(f"priors: {error}") from None


def confusion_prior(classifier) -> DirichletCategorical:
    """Return the prior of the confusion matrix that ``label_noise`` gives, or raise where it cannot be learned."""
    if not isinstance(classifier.label_noise, LabelNoise):
        raise TypeError(
            f"label_noise must be a LabelNoise such as LabelNoise(rate=0.1), got {classifier.label_noise!r}"
        )
    for name in chosen_by_loo(classifier):
        raise ValueError(f"{name}='loo' is chosen by labels that must be right: give a value, or no label_noise")
    if isinstance(resolve(classifier.inference), Laplace):
        raise ValueError(
            "inference='laplace' begins its search at the prior, and may find a mode with the classes exchanged: "
            "with label_noise use 'map', which begins at the labels"
        )
    return classifier.label_noise.confusion(classifier.classes_.tolist())


def check_statistics(schema, statistics, classes, template) -> None:
    """Raise if statistics summed elsewhere are not of this schema, these classes and the template's leaves."""
    if not isinstance(statistics, ClassStatistics):
        raise TypeError(
            f"statistics must come from row_schema(...).sum(batch), or be a sum of such; got {statistics!r:.100}"
        )
    if statistics.leaves.keys() != template.leaves.keys():
        raise ValueError(
            f"statistics hold the blocks {listed(statistics.leaves)}, the schema {listed(template.leaves)}: "
            "they are of different tables"
        )
    if len(statistics.classes.sums) != len(classes):
        raise ValueError(f"statistics are of {len(statistics.classes.sums)} classes, not {len(classes)}")
    if statistics.schema not in ("", fingerprint(schema, classes)):
        raise ValueError(
            "statistics were summed under another schema: columns, categories or classes are not the same, or "
            "come in another order"
        )


def warn_of_constant_columns(schema, statistics) -> None:
    """Warn of Gaussian columns that are constant, under weak priors; raise where squares of values lose digits."""
    for block in schema.blocks:
        if block.leaf not in GAUSSIAN:
            continue
        pooled = statistics.leaves[block.name].pooled
        if not (pooled.constant.any() or (pooled.variance < _SMALLEST**2).any()):
            continue
        flags = np.ravel(pooled.constant)
        size, variance = np.abs(np.ravel(pooled.mean)), np.ravel(pooled.variance)
        tiny = (flags & (size > 0) & (size < _SMALLEST)) | (variance < _SMALLEST**2)
        if tiny.any():
            raise ValueError(
                f"columns {listed(np.array(block.columns)[tiny])}: squares of values below {_SMALLEST:g} lose "
                "their digits in float64; give them in smaller units"
            )
        constant = [name for name, flag in zip(block.columns, flags, strict=True) if flag]
        if constant:
            warn(
                f"columns {listed(constant)} are constant: they say nothing of the class, and their weak "
                "prior takes the variance 1"
            )


def naive_bayes_of(classifier, schema) -> NaiveBayes:
    """Return the model of a naive Bayes classifier, weak priors still to come."""
    leaves = {block.name: leaf_of(block, classifier.prior) for block in schema.blocks}
    return NaiveBayes(class_prior(classifier), leaves, columns={b.name: b.columns for b in schema.blocks})


def leaf_of(block: Block, prior: str = "weak") -> ExponentialFamily:
    """Return the leaf of a block of columns: the user's own, or the one of their family."""
    leaf: Any = block.leaf  # the model refuses anything else by name
    shape = () if block.single else (len(block.columns),)
    if isinstance(leaf, str):
        if leaf not in PRIORS[prior]:
            raise ValueError(
                f"column {block.columns[0]!r}: there is no {prior} prior of {leaf!r} columns; give its leaf"
            )
        return PRIORS[prior][leaf](block, shape)
    if isinstance(leaf, ExponentialFamily) and shape and not (leaf.event_dim or leaf.batch_shape):
        return leaf._repeated(*shape)
    return leaf


def _counted(alpha: float):
    """Return leaves of coins, dice and bags of words by family, with ``alpha`` prior counts of each outcome."""
    return {
        "bernoulli": lambda block, shape: BetaBernoulli(np.full(shape, alpha), alpha),
        "categorical": lambda block, shape: DirichletCategorical(
            np.full((*shape, len(block.categories)), alpha), block.categories
        ),
        "multinomial": lambda block, shape: DirichletMultinomial(alpha, block.columns),
    }


_WEAK = WeakGaussian(NormalInverseGamma.weak)


def _log_gaussian(shift: float):
    return lambda block, shape: WeakLogGaussian(functools.partial(LogNormal.weak, shift=shift), shift=shift)


PRIORS: dict[str, dict[str, Any]] = {  # by prior and family
    "weak": {
        **_counted(1.0),
        **dict.fromkeys(("gaussian", "date"), lambda block, shape: _WEAK),
        "poisson": lambda block, shape: WeakPoisson(GammaPoisson.weak),
        "log": _log_gaussian(0.0),
        "log1p": _log_gaussian(1.0),
    },
    "reference": {
        **_counted(0.5),
        **dict.fromkeys(("gaussian", "date"), lambda block, shape: ReferenceGaussian()),
        "poisson": lambda block, shape: ReferencePoisson(),
    },
}


def check_settings(classifier) -> None:
    """Raise where a setting that does not depend on the rows is none."""
    for name, options in (("weights", ("stacking", "loo", "evidence")), ("unseen", ("error", "missing"))):
        if getattr(classifier, name) not in options:
            raise ValueError(f"{name} must be one of {list(options)}, got {getattr(classifier, name)!r}")
    check_flag("bend", classifier.bend)
    jobs = classifier.n_jobs
    if jobs is not None and (not isinstance(jobs, Integral) or jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None; got {jobs!r}")
    if classifier.progress is not None:
        check_flag("progress", classifier.progress)
    families.chosen(classifier.members, classifier.get_params(deep=False))


def concentration_of(classifier) -> np.ndarray:
    """Return the Dirichlet concentration of each class, (K,), or raise; ``priors`` are checked with it."""
    value, classes = _numbers(classifier.class_concentration), classifier.classes_
    if value.shape not in ((), classes.shape) or not (value > 0).all():
        raise ValueError(
            f"class_concentration must be a number > 0, or one for each of the {len(classes)} classes "
            f"{listed(classes)}; got {classifier.class_concentration!r}"
        )
    if classifier.priors is not None:
        known_priors(classifier.priors, classes)
    return np.broadcast_to(value, classes.shape).copy()


def known_priors(priors, classes) -> np.ndarray:
    """Return class probabilities as an array, (K,), or raise."""
    value = _numbers(priors)
    if value.shape != classes.shape or not (value >= 0).all() or not np.isclose(value.sum(), 1, atol=1e-6):
        raise ValueError(
            f"priors must hold one probability for each of the {len(classes)} classes {listed(classes)}, and sum to 1; "
            f"got {priors!r}"
        )
    return value


def _numbers(value) -> np.ndarray:
    """Return a setting as an array of floats; NaN, which no check lets pass, where it holds no numbers."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        return np.array(np.nan)


def learn_leaves(classifier, rows: Rows) -> Leaves | None:
    """Return the leaves of the columns that have their own, with their statistics; None where there are none."""
    if rows.e is None:
        return None
    own = columns.leaves(classifier.schema_)
    model = NaiveBayes(
        DirichletCategorical(1.0, classifier.classes_.tolist()),
        {block.name: leaf_of(block) for block in own},
        columns={block.name: block.columns for block in own},
    )
    single = [block.name for block in own if block.single]
    leaves = Leaves.of(model, single, rows.e, rows.codes, rows.weight)
    leaves.settled()  # or raise, before anything is learned
    warn_of_constant_columns(replace(classifier.schema_, blocks=own), leaves.statistics)
    return leaves


def warn_of_fit(classifier, rows: Rows) -> None:
    """Warn of columns that say nothing, gaps that are filled, scores that gain nothing, copies, and lost groups."""
    scores, classes = classifier.scores_, classifier.classes_
    if classifier.constant_:
        warn(
            f"columns {listed(classifier.constant_)} hold one value or none: they are no sign of the class, and left "
            "out"
        )
    if any(not part.drawn and part.view.filling is not None for part in classifier.average_.taking("numbers")):
        warn(
            "numeric columns are many and have gaps: for the full and shared covariances these are filled by the "
            "means of their class. At prediction they are integrated out"
        )
    if len(classes) > 1 and scores["nested"] <= scores["base_rate"]:
        warn(
            "no member predicts rows left out better than the class prior alone: the columns may say nothing of "
            "the class, or there are too few rows to tell"
        )
    if scores["repeats"] > _REPEATS and any(len(np.unique(column)) > _VALUES for column in rows.x.T):
        warn(
            f"{scores['repeats']:.0%} of the rows repeat another row, class and all. Members that leave out one row "
            "keep its copies, which tell its class. If they are copies of one measurement, drop them; if they belong "
            "together, give groups="
        )
    if rows.group is None:
        names = columns.numbers(classifier.schema_, classifier.constant_) + columns.categories(classifier.schema_)
        warn_of_names(names, (*rows.x.T, *rows.c.T), rows.codes)
    else:
        warn_of_undivided(classes, rows.codes, rows.group)
