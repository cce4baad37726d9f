"""Settings of the averaged classifier, checked, the leaves of its columns, and the warnings of its fit."""

from dataclasses import replace
from numbers import Integral

import numpy as np

from bayesgen.averaging import families
from bayesgen.averaging.leaves import ColumnModels
from bayesgen.averaging.member_rows import Rows
from bayesgen.core.errors import InputTypeError, listed, warn
from bayesgen.core.names import by_name
from bayesgen.estimators.settings import leaf_of, warn_of_constant_columns
from bayesgen.inspection.fitted import known_classes
from bayesgen.models import DirichletCategorical, MarkovChain, NaiveBayes
from bayesgen.numerics.checks import check_flag
from bayesgen.tables import arrays
from bayesgen.tables.groups import warn_of_names, warn_of_undivided
from bayesgen.tables.repeats import Repeats, repeats


def check_settings(classifier) -> None:
    """Raise an error for a setting that is invalid whatever the rows are."""
    classifier._check_options(weights=("stacking", "evidence"), unseen=("error", "missing"), wild=("complete", "keep"))
    check_flag("bend", classifier.bend)
    jobs = classifier.n_jobs
    if jobs is not None and (not isinstance(jobs, Integral) or jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None; got {jobs!r}")
    if classifier.progress is not None:
        check_flag("progress", classifier.progress)
    families.chosen(classifier.members, classifier.get_params(deep=False))


def concentration_of(classifier) -> np.ndarray:
    """Return the Dirichlet concentration of each class, (K,); raise where it, or ``priors``, do not fit the classes."""
    classes, expected = classifier.classes_, "a number > 0 for each of the classes"
    value = _numbers(by_name("class_concentration", classifier.class_concentration, classes, expected=expected))
    if value.shape not in ((), classes.shape) or not (value > 0).all():
        raise ValueError(
            f"class_concentration must be a number > 0, or one for each of the {len(classes)} classes "
            f"{listed(classes)}; got {classifier.class_concentration!r}"
        )
    if classifier.priors is not None:
        known_classes(classifier.priors, classes)  # or raise
    return np.broadcast_to(value, classes.shape).copy()


def _numbers(value) -> np.ndarray:
    """Return a setting as an array of floats; NaN, which no check lets pass, where it holds no numbers."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        return np.array(np.nan)


def learn_leaves(classifier, rows: Rows) -> ColumnModels | None:
    """Return the leaves of the columns that have their own, with their statistics; None where there are none."""
    if rows.e is None:
        return None
    blocks = arrays.leaves(classifier.schema_)
    if sequences := [block.columns[0] for block in blocks if isinstance(block.leaf, MarkovChain)]:
        raise InputTypeError(
            f"columns {listed(sequences)} hold sequences, whose length differs from row to row, which an average does "
            "not take: use NaiveBayesClassifier"
        )
    model = NaiveBayes(
        DirichletCategorical(1.0, classifier.classes_.tolist()),
        {block.name: leaf_of(block) for block in blocks},
        columns={block.name: block.columns for block in blocks},
    )
    single = [block.name for block in blocks if block.single]
    leaves = ColumnModels.of(model, single, rows.e, rows.codes, rows.weight)
    leaves.settled()  # or raise, before anything is learned
    warn_of_constant_columns(replace(classifier.schema_, blocks=blocks), leaves.statistics)
    return leaves


def of_wild(setting: str, given) -> tuple[str, str]:
    """Return what becomes of wild entries, and the cure, in words; ``given`` are names of classifiers of the user's."""
    if setting == "keep":
        return "it is learned from as it is, as wild='keep' asks", ""
    done = "it is taken as missing, and what its class and row let expect stands for it"
    done += f" (members={listed(given)}, classifiers of your own, learn from it as it is)" if given else ""
    return (
        f"{done}. Mend it or give NaN",
        "; if it is right, give wild='keep', or the logarithm or the ranks of the column",
    )


def repeats_of(rows: Rows) -> Repeats:
    """Return the rows that repeat another."""
    leaves = () if rows.e is None else rows.e.T
    return repeats((*rows.x.T, *rows.c.T, *leaves), rows.codes)


def warn_of_fit(classifier, rows: Rows, found: Repeats | None) -> None:
    """Warn of columns that say nothing, gaps that are filled, scores that gain nothing, copies, and lost groups."""
    scores, classes = classifier.scores_, classifier.classes_
    if classifier.constant_:
        warn(
            f"columns {listed(classifier.constant_)} hold one value or none: they are no sign of the class, and left "
            "out"
        )
    numeric = classifier.average_.modelling("numbers")
    if any(members.keeps_rows and members.view.filling is not None for members in numeric):
        warn(
            "numeric columns are many and have gaps: for the full and shared covariances these are filled by the "
            "means of their class. At prediction they are integrated out"
        )
    if len(classes) > 1 and scores["nested"] <= scores["base_rate"]:
        warn(
            "no member predicts rows left out better than the class prior alone: the columns may say nothing of "
            "the class, or there are too few rows to tell"
        )
    if found is not None and found.unlikely:
        warn(found.told("groups="))
    if rows.group is None:
        schema = classifier.schema_
        names = arrays.numbers(schema, classifier.constant_) + arrays.categories(schema, classifier.constant_)
        warn_of_names(names, (*rows.x.T, *rows.c.T), rows.codes)
    else:
        warn_of_undivided(classes, rows.codes, rows.group)
