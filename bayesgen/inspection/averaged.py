"""Inspection of an averaged classifier: its members, joint density, explanations, and posteriors of the members."""

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.averaging import columns, draws, explanation
from bayesgen.averaging.factors import (
    LEAF,
    MemberSums,
    codes_of,
    components_of,
    heaviest,
    joined_leaves,
    knows,
    leaf_blocks,
    places_of,
)
from bayesgen.averaging.warp import far_rows
from bayesgen.inspection.missing import SHARE, Joint, gibbs
from bayesgen.inspection.one_model import labels_of, totals_of
from bayesgen.numerics.pieces import select_rows
from bayesgen.posterior.component import Components
from bayesgen.posterior.posterior import generator

_SETTINGS = ("kind", "components", "covariance", "rho", "kappa", "shrinkage", "categories", "strength")
_LEAST = 0.01  # least weight of a member whose posterior is returned


class JointOfAverage(Joint):
    """The joint density of columns and class under the untempered members of an average."""

    def __init__(self, classifier):
        self.classifier, self.average = classifier, classifier.average_
        self.log_prior = self.average.log_class_prior
        self.leaves: Any = self.average.leaves
        self.labels = labels_of(classifier.schema_)

    def read(self, X):
        """Return the numbers of the rows, the codes of their categories, and a block for each leaf."""
        rows = dict(self.classifier._read(X))
        rows["categories"] = np.where(rows["categories"] < 0, np.nan, rows["categories"])
        return rows if self.leaves is None else rows | leaf_blocks(self.leaves, rows.pop("leaves"))

    def nothing(self):
        """Return a row of missing entries."""
        schema, constant = self.classifier.schema_, self.classifier.constant_
        widths = {"numbers": len(columns.numbers(schema, constant)), "categories": len(columns.categories(schema))}
        rows = {name: np.full((1, width), np.nan) for name, width in widths.items()}
        return rows if self.leaves is None else rows | leaf_blocks(self.leaves, np.full((1, self.leaves.width), np.nan))

    def arrays(self, rows) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return numbers, codes of categories, -1 where missing, and entries of leaves, as the average takes them."""
        return rows["numbers"], codes_of(rows), None if self.leaves is None else joined_leaves(self.leaves, rows)

    def blocks(self, rows):
        """Return the entries by block of the schema, NaN in the columns that were left out."""
        x, _, e = self.arrays(rows)
        return columns.blocks(self.classifier.schema_, x, rows["categories"], e, self.classifier.constant_)

    def column(self, gap):
        """Return the place of a number, a category, or a column with a leaf."""
        schema, constant = self.classifier.schema_, self.classifier.constant_
        names: dict[str, Any] = {LEAF + block.name: block.columns for block in columns.leaves(schema)}
        names |= {"numbers": columns.numbers(schema, constant), "categories": columns.categories(schema)}
        return schema.columns.index(names[gap.block][gap.place])

    def totals(self):
        """Return the leaves of counts given their total."""
        return {} if self.leaves is None else totals_of(self.leaves.model)

    def check(self, rows, question):
        """Refuse numbers that are too far out, too."""
        super().check(rows, question)
        refuse_far(self.classifier, rows["numbers"], question)

    def log_density(self, rows):
        """Return the log density under the members, in the units of the columns."""
        return self.average.log_joint(*self.arrays(rows)) - self.log_prior

    def components(self, draws=None, even=False):
        """Return the members that have a density; class probabilities are the same in all."""
        return components_of(self.average, self.labels, self.average.density_weights)

    def valued(self):
        """Return the heaviest members that have a density, and besides the heaviest that predict the class by one."""
        weights = heaviest(self.average.density_weights, SHARE)
        return components_of(self.average, self.labels, weights, self._answer.weights)

    def log_probability(self, given, entry=None, along=None):
        """Ask the tempered members that have nearly all of the weight; those that are no factors by whole rows."""
        rows = given.rows
        if entry is None or along is None:
            density = given.by_member()
        else:
            density, rows = given.along_members(entry, along.log_density), select_rows(rows, entry.gap.rows)
            rows = select_rows(rows, np.repeat(np.arange(density.shape[2]), density.shape[3]))
            values = np.broadcast_to(along.values, density.shape[2:]).ravel()
            rows[entry.gap.block].reshape(len(values), -1)[:, entry.gap.place] = values
        members = places_of(self.average, heaviest(self.average.density_weights, SHARE), self._answer.weights)
        others = self._answer.weights > 0
        others[members] = False
        if others.any():
            x, c, e = self.arrays(rows)
            more = self.average.log_density(x, c, others, e).swapaxes(1, 2)
            density = np.concatenate([density, more.reshape(*more.shape[:2], *density.shape[2:])])
        with np.errstate(divide="ignore"):
            return np.log(self._answer.of_density(density, np.append(members, np.flatnonzero(others))))

    @functools.cached_property
    def _answer(self):
        posterior = self.classifier.posterior_
        return replace(posterior, weights=heaviest(posterior.weights, SHARE))

    def measured(self, rows):
        """Yield the columns, too, that were left out of the fit: they tell nothing about the class."""
        yield from super().measured(rows)
        nothing = np.zeros((len(self.log_prior), len(rows["numbers"])))
        for name in self.classifier.constant_:
            place = slice(None), self.classifier.schema_.columns.index(name)
            yield place, nothing, nothing[..., None], np.ones((nothing.shape[1], 1))

    def knows(self, rows, codes):
        """Compare the sums of the rows with those of the fit."""
        return knows(self.average, *self.arrays(rows), codes)

    def drawn(self, rows, codes, fitted, rng):
        """Draw a member by what all rows say of it, and its parameters by Gibbs' sampler."""
        components, members = self.components(), np.flatnonzero(self.average.density_weights)
        weight = np.exp(components.log_member) if fitted is not None else self.member_chances(components, rows, codes)
        chains: dict[int, Iterator[Components]] = {}
        while True:
            m = int(rng.choice(len(members), p=weight / weight.sum()))
            if m not in chains:
                known = codes if fitted is None else fitted
                chains[m] = self._gibbs(self.average.members[members[m]], rows, known, rng, fitted is None)
            yield next(chains[m])

    def _gibbs(self, member, rows, codes, rng, added: bool) -> Iterator[Components]:
        """Alternate rows and parameters of one member; sums are ``added`` to those of the fit, or take their place."""
        sums = MemberSums.of(self.average, member, self.labels)
        given = {name: entries for name, entries in rows.items() if name.startswith(LEAF)}
        closed = self.leaves is not None and self.leaves.has_closed_form(joined_leaves(self.leaves, rows))

        def learned(completed, t, groups):
            return sums.learned(completed | given if closed else completed, t, groups, added).drawn(rng)

        seen = [~np.isnan(own.reshape(len(own), -1)) | (closed and name in given) for name, own in rows.items()]
        return gibbs(sums.drawn(rng), learned, rows, codes, rng, np.hstack(seen), added * sums.classes)


def check_averaged(classifier, question: str) -> None:
    """Raise if a question about averaged classifiers is put to another classifier."""
    check_is_fitted(classifier)
    if not hasattr(classifier, "members_"):
        raise TypeError(f"{question} is about an AveragedClassifier, got a {type(classifier).__name__}")


def summary(classifier):
    """Return a table of the members, the heaviest first.

    Returns
    -------
    DataFrame
        A row for each member, with the columns "kind" (generative, softmax, screened, coded, forest, boosted,
        base rate), "components", "covariance", "rho", "kappa", "shrinkage" (of the numbers), "categories",
        "strength", "columns" (how many a screened member takes, or how many numbers a coded one takes as
        categories), "leaves" (the most of a boosted tree, or the names of the columns with leaves of their own),
        "rows" (the distinct rows from which it learned what is no sum, such as bends, components, coefficients and
        trees: fewer than there are where the time would be too long), "exponent", "weight", "share", the weight of
        all members of its family, and "log score", the mean over rows left out.

    Examples
    --------
    >>> from bayesgen import AveragedClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> table = summary(AveragedClassifier(members=["gaussian", "category", "softmax"]).fit(X[::5], y[::5]))
    >>> float(table["weight"].sum().round(12))
    1.0
    """
    import pandas as pd

    check_is_fitted(classifier)
    frame = pd.DataFrame([member.settings() for member in classifier.members_])
    first = [*_SETTINGS, *(name for name in frame if name not in _SETTINGS)]
    frame = frame.reindex(columns=first).astype({"components": object, "covariance": object, "categories": object})
    frame["rows"] = classifier.scores_.get("learned", np.nan)  # a file of 0.2.0 does not say
    frame["exponent"], frame["weight"] = classifier.exponents_, classifier.weights_
    family = pd.Series([member.family for member in classifier.members_])
    frame["share"] = frame["weight"].groupby(family).transform("sum")
    frame["log score"] = classifier.scores_["members"]
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


def refuse_far(classifier, x, question: str) -> None:
    """Raise if a number of rows (n, D) is so far out that only limits of densities are left, useless for a question."""
    bend = classifier.average_.bend
    if bend is None:
        return
    y = bend.forward(x)
    for row in far_rows(np.where(np.isnan(y), 0.0, y))[:1]:
        place = np.nanargmax(np.abs(y[row]))
        name = columns.numbers(classifier.schema_, classifier.constant_)[place]
        raise ValueError(
            f"column {name!r}: value {x[row, place]:g} in row {row} is too far from the rows of the fit for "
            f"{question}: give NaN in its place, or leave the row out"
        )


def averaged_terms(classifier, X):
    """Return the names and terms (n, K, terms) by which `explain` explains an averaged classifier."""
    rows = classifier._read(X)
    refuse_far(classifier, rows["numbers"], "explain()")
    terms = explanation.terms(classifier.posterior_, *rows.values())
    schema, left_out, leaves = classifier.schema_, classifier.constant_, classifier.average_.leaves
    own = [] if leaves is None else leaves.parts()
    first = [*columns.numbers(schema, left_out), *columns.categories(schema), *(of[0] for _, of, _ in own)]
    names = [*first[: len(first) - len(own)], *(name for name, _, _ in own)]
    order = sorted(range(len(first)), key=lambda j: schema.columns.index(first[j]))
    return [*(names[j] for j in order), "remainder"], [terms[..., j] for j in (0, *(1 + j for j in order), -1)]


def to_arviz(classifier):
    """Return draws of the parameters of each generative member of some weight, as an `xarray.DataTree`.

    A weighted average of tempered members has no single posterior, so each member has its own: the group "member 0"
    is the heaviest, and so on down to weight 0.01. Each group has the attributes "weight" and "exponent", and an
    untempered "posterior" of the means and covariances (or variances) of the classes, in the units of the bent
    columns, of the probabilities of levels and classes, and of the sites of leaves, such as "visits.rate". A level
    is named with its column ("soil = clay"). Softmax members are points and have no posterior.
    """
    import xarray as xr

    fitted, rng = classifier.average_, generator(classifier.random_state)
    heavy = [m for m in np.argsort(-fitted.weights, kind="stable") if fitted.weights[m] >= _LEAST]
    groups = {}
    for m in heavy:
        member = fitted.members[m]
        if not fitted.drawn(member):
            continue
        own = draws.parameters(fitted, member, (4, 250), rng)
        dims = {dim for variable, _ in own.values() for dim in variable}
        named = (fitted.leaves.posterior.coords() if member.leaves else {}) | _labels(classifier, member)
        labels = {dim: values for dim, values in named.items() if dim in dims}
        place = f"member {len(groups) // 2}"
        groups[f"/{place}"] = xr.Dataset(attrs={"weight": fitted.weights[m], "exponent": fitted.exponents[m]})
        groups[f"/{place}"].attrs["family"] = member.family
        variables = {site: (("chain", "draw", *axes), values) for site, (axes, values) in own.items()}
        groups[f"/{place}/posterior"] = xr.Dataset(variables, coords={"chain": range(4), "draw": range(250)} | labels)
    result = xr.DataTree.from_dict(groups)
    result.attrs["inference_library"] = "bayesgen"
    return result


def _labels(classifier, member) -> dict[str, list]:
    """Return the names along each axis that the parameters of a member may have."""
    schema, classes = classifier.schema_, classifier.classes_.tolist()
    numeric = columns.numbers(schema, classifier.constant_)
    labels = {"class": classes, "feature": numeric, "feature2": numeric, "level": columns.level_names(schema)}
    if member.numbers is not None:
        view, _ = classifier.average_.place(member.numbers)
        owner = view.view.owner.tolist()
        labels["group"] = [f"{classes[k]}, component {owner[:g].count(k)}" for g, k in enumerate(owner)]
    return labels
