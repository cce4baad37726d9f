"""Settings of the averaged classifier, checked, the leaves of its columns, and what is found in its fit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bayesgen.averaging import completion, families
from bayesgen.averaging.leaves import ColumnModels
from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.outside import Given, refuse_changed
from bayesgen.averaging.view import refuse_large
from bayesgen.core.errors import Argument, InputTypeError, listed
from bayesgen.estimators.settings import check_scale, leaf_of
from bayesgen.models import DirichletCategorical, MarkovChain, NaiveBayes
from bayesgen.numerics import folds
from bayesgen.numerics.checks import check_flag
from bayesgen.tables import arrays, wild
from bayesgen.tables.findings import ANSWERS, Finding, findings, of_wild
from bayesgen.tables.groups import naming, undivided
from bayesgen.tables.learned_rows import LearnedRows
from bayesgen.tables.repeats import Repeats, repeats

_WRITTEN = 1_000_000  # rows by their weights up to which they are written out


def check_settings(classifier) -> None:
    """Raise an error for a setting that is invalid whatever the rows are."""
    classifier._check_options(weights=("stacking", "evidence"), unseen=("error", "missing"), wild=("complete", "keep"))
    check_flag("bend", classifier.bend)
    check_flag("keep_rows", classifier.keep_rows)
    if classifier.keep_rows and (names := [name for name, _ in families.pairs(classifier.members)]):
        raise ValueError(f"keep_rows=True keeps no rows as they came, from which members={names!r:.100} learn")
    if classifier.progress is not None:
        check_flag("progress", classifier.progress)
    families.chosen(classifier.members, classifier.get_params(deep=False))


def written_out(learned: LearnedRows) -> tuple[LearnedRows, str, bool]:
    """Return the rows as often as they count, what leaves with a row, and True if weights count too many to write."""
    weight = learned.weight
    times = None if weight is None or learned.shared else folds.times(weight)
    if times is None:
        return learned, "rows" if weight is None else "whole rows", False
    counted = bool(times.sum() > _WRITTEN)
    return learned if counted else learned.repeated(times), "rows that weights count", counted


def given_members(classifier, learned: LearnedRows) -> Given | None:
    """Return what members of the user's learn from, the rows as they came, or None; raise where they cannot."""
    schema, names = classifier.schema_, [name for name, _ in families.pairs(classifier.members)]
    if not names:
        return None
    if learned.shared:
        raise ValueError("members of your own take one label a row, and y has shares: give no such members")
    if leaves := [column for block in arrays.leaves(schema) for column in block.columns]:
        raise ValueError(
            f"members={listed(names)} are classifiers of your own, which see no columns with leaves "
            f"({listed(leaves)}): give either these members, or features"
        )
    refuse_changed(names, learned.table, schema)
    labels = learned.classes[learned.codes]
    return Given(learned.table, labels, learned.classes, learned.weight, schema, tuple(classifier.constant_))


def member_rows(classifier, learned: LearnedRows, counted: bool) -> tuple[Rows, list[Finding]]:
    """Return the rows as members take them, each under the class of its largest share, and their wild entries.

    Expected values stand for these, where the user does not ask to keep them.
    """
    names = arrays.numbers(classifier.schema_, classifier.constant_)
    rows = as_members_take(classifier, learned, counted)
    far, keep = wild.find(rows.x, rows.codes), classifier.wild == "keep"
    kind, given = "wild kept" if keep else "wild completed", [name for name, _ in families.pairs(classifier.members)]
    found = [*of_wild(far, rows.x, names, learned.places, classifier.schema_.dates, kind, given)]
    return completion.completed(rows, far, classifier.bend) if found and not keep else rows, found


def as_members_take(classifier, learned: LearnedRows, counted: bool) -> Rows:
    """Return the rows as members take them, each under the class of its largest share."""
    schema, constant, n = classifier.schema_, classifier.constant_, len(learned.codes)
    alone = learned.group is None and learned.shared
    refuse_large(len(learned.stacked()[1]), len(arrays.numbers(schema, constant)), len(learned.classes))
    return Rows(
        *arrays.numbers_and_codes(schema, learned.blocks, constant, arrays.LARGEST),
        learned.likely,
        np.ones(n) if learned.weight is None else learned.weight,
        tuple(arrays.levels(schema, constant)),
        len(learned.classes),
        np.arange(n) if alone else learned.group,
        arrays.entries(schema, learned.blocks),
        shared=alone,
        counted=counted,
    )


def leaving_together(learned: LearnedRows, rows: Rows) -> tuple[Rows, Any, Repeats]:
    """Return the rows, one for each share, with what leaves together and is worth; their places; and repeats."""
    found = repeats((*rows.x.T, *rows.c.T, *(() if rows.e is None else rows.e.T)), rows.codes)
    copies, together, places = found.copies is not None and learned.group is None, rows.shared, learned.places
    if copies:
        rows = replace(rows, group=found.copies, shared=False)
    if learned.shared:
        row, code, votes = learned.stacked()
        rows, places = replace(rows.take(row, votes), codes=code), np.asarray(places)[row]
    worth = folds.effective(rows.weight, rows.group if together or copies else None)
    return rows if rows.counted else replace(rows, each=worth / len(rows)), places, found


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
    model = leaf_models(classifier)
    single = [block.name for block in blocks if block.single]
    leaves = ColumnModels.of(model, single, rows.e, rows.codes, rows.weight)
    leaves.settled()  # or raise, before anything is learned
    check_scale(replace(classifier.schema_, blocks=blocks), leaves.statistics)
    return leaves


def leaf_models(classifier) -> NaiveBayes:
    """Return the leaves of the columns that have their own, whose weak priors are still to come."""
    blocks = arrays.leaves(classifier.schema_)
    leaves, columns = {block.name: leaf_of(block) for block in blocks}, {block.name: block.columns for block in blocks}
    return NaiveBayes(DirichletCategorical(1.0, classifier.classes_.tolist()), leaves, columns=columns)


def findings_of_fit(classifier, learned: LearnedRows, rows: Rows, found: Repeats) -> Iterator[Finding]:
    """Find columns that say nothing, gaps that are filled, scores that gain nothing, copies, and lost groups."""
    schema, scores, constant = classifier.schema_, classifier.scores_, classifier.constant_
    numbers = ("answers",) if hasattr(classifier, "feature_names_in_") and classifier.features == "auto" else ANSWERS
    sums = getattr(classifier.average_.leaves, "statistics", None)
    yield from findings(schema, sums, learned, classifier.classes_, {*numbers, "wild", "repeats"})
    if constant:
        yield Finding("constant", tuple(constant))
    numeric = classifier.average_.modelling("numbers")
    if any(members.keeps_rows and members.view.filling is not None for members in numeric):
        yield Finding("filled")
    if len(classifier.classes_) > 1 and scores["nested"] <= scores["base_rate"]:
        yield Finding("nothing gained")
    if learned.group is None and found.unlikely:
        yield Finding("repeats left out", value=found, cure=found.told())
    if rows.group is not None:
        if len(alone := undivided(classifier.classes_, rows.codes, rows.group)):
            yield Finding("undivided", value=alone.tolist())
        return
    names = arrays.numbers(schema, constant) + arrays.categories(schema, constant)
    for name, values in zip(names, (*rows.x.T, *rows.c.T), strict=True):
        if count := naming(name, values, rows.codes):
            cure = Argument("groups", name, f"groups=X[{name!r}]")
            yield Finding("naming", (name,), cure=cure, facts={"rows": len(values), "count": count})
