"""A fitted classifier in plain numbers and lists, which the scorer in JavaScript reads.

A generative classifier is a mixture of products of factors (`bayesgen.posterior.component`): a member for an exact
posterior or a point, one for each draw of a sampler. A factor is the predictive density of a leaf, as the leaf itself
says it (`Leaf.density`): a kind and arrays. A regression is a link of scores, as its model writes it, under a point
or each draw.
"""

import base64
import collections
import datetime
import hashlib
import json
import math
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from bayesgen.core import __version__
from bayesgen.core.errors import Argument, InputError, NoClosedForm, listed
from bayesgen.core.registry import fitted_of
from bayesgen.core.statistics import Rows
from bayesgen.models.bernoulli import BINARY
from bayesgen.models.leaf import INFINITE
from bayesgen.models.linear_model import not_finite
from bayesgen.models.unknown_labels import PartlyLabelled
from bayesgen.numerics.checks import LARGEST_COUNT
from bayesgen.numerics.draws import generator
from bayesgen.posterior.leaf_factor import leaf_factors
from bayesgen.tables import arrays, dates, design
from bayesgen.tables.reading import limit_of
from bayesgen.tables.table import DECLARE

_ROWS = 500  # drawn, beside which a row is typical or not
_READABLE = 4096  # numbers of an array that are written as such, a quarter of them of matrices; more are packed
_VALUE = "value {value} in row 0 "  # stands before the words of a leaf
_KINDS = ("gaussian", "vector", "list", "count", "heads", "tosses", "bag")  # of density, in kinds.js
_USUAL = (0.0005, 0.9995)  # levels of the range of a column


def plain(classifier, draws: int) -> dict[str, Any]:
    """Return a fitted classifier as the record of docs/design.md, or raise; of a sampler at most so many draws."""
    classifier = fitted_of(classifier)
    posterior, generative = classifier.posterior_, hasattr(classifier, "score_samples")
    if not (generative or hasattr(posterior.model, "written")):
        generate = "naive Bayes, Gaussian discriminants, latent classes, averages"
        can = f"{generate}, and logistic, probit and ordered regressions can"
        raise ValueError(f"{classifier.estimator} cannot be exported: {can}")
    shipped, average = None, posterior.kind == "average"
    if posterior.kind == "draws":
        classifier = replace(classifier, posterior_=posterior.as_draws().thinned(draws))
        shipped = [len(next(iter(each.flat.values()))) for each in (classifier.posterior_, posterior.as_draws())]
    entries = Entries(_columns(classifier))
    columns, place, said = entries.columns, entries.place, classifier.schema_.reading
    made = {
        "classes": [str(label) for label in classifier.classes_.tolist()],
        "target": classifier.schema_.target,
        "columns": columns,
        "unused": [name for name in classifier.schema_.columns if name not in place],
        "generative": generative,
        "infinite": _VALUE + INFINITE if generative else not_finite(np.inf),
        "gaps": generative or classifier.missing == "mean",
        "kind": posterior.kind,
        "interval": posterior.uncertain,
        "unseen": classifier.unseen,
        "exponent": float(getattr(classifier, "exponent_", 1.0)),
        "order": [place[column] for column in classifier.schema_.block_of],
        "reading": {"file": said.percent is not None, "sep": said.sep, "missing": said.words}
        | {"decimal": said.decimal or ".", "thousands": said.thousands},
    }
    if any(column["kind"] == "date" for column in columns):
        made["forms"] = {form: dates.pattern(form).pattern.replace("(?P<", "(?<") for form in dates.FORMATS}
    try:
        if average:
            made |= _average(classifier, entries)
        else:
            made |= _mixture(classifier, entries) if generative else _regression(classifier, columns)
    except NoClosedForm as error:
        raise InputError(f"{classifier.estimator} cannot be exported: {error}") from None
    made |= {"derived": entries.derived} | ({"kinds": entries.kinds} if entries.kinds else {})
    for column in columns:
        if column["name"] in classifier.schema_.unsigned and "range" in column:
            column["range"][0] = max(column["range"][0], 0.0)
    checksum = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()
    rows, counts = _learned_from(classifier)
    about = {
        "package": "bayesgen",
        "version": __version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "model": classifier.estimator,
        "rows": rows,
        "shares": None if counts is None else (counts / counts.sum()).tolist(),
        "score": -classifier.scores_["nested"] if average else None,
        "draws": shipped,
        "checksum": checksum,
    }
    return made | {"about": about}


class Entries:
    """Entries of a row: its columns, and numbers that are derived of one column each, which stand behind them."""

    def __init__(self, columns: list[dict[str, Any]]):
        self.columns, self.derived = columns, []
        self.kinds: dict[str, str] = {}  # scripts of kinds of density that users wrote
        self.place = {column["name"]: j for j, column in enumerate(columns)}  # of a column by its name
        self._known: dict[str, int] = {}

    def add(self, entry: int | dict[str, Any], density: bool) -> int:
        """Return the place of a column, or of what is derived as a mapping says, marked if a factor is its density."""
        if isinstance(entry, int):
            return entry
        key = json.dumps(entry)
        if key not in self._known:
            self._known[key] = len(self.columns) + len(self.derived)
            self.derived.append(dict(entry))
        place = self._known[key]
        if density:
            self.derived[place - len(self.columns)]["density"] = True
        return place


def _mixture(classifier, entries: Entries) -> dict[str, Any]:
    """Return a generative classifier: its members, factors, and what questions about rows need."""
    joint, posterior = classifier.joint(), classifier.posterior_
    components, classes = joint.components(), posterior.model.classes
    factors = [_factor(factor, classifier.schema_, entries) for factor in components.factors]
    made = {
        "priors": np.exp(joint.log_prior).tolist(),
        "members": {
            "count": len(components.log_member),
            "log": components.log_member.tolist(),
            "classes": written(np.exp(components.log_class)),
            "total": float(classes.alpha.sum()) if posterior.kind == "exact" and hasattr(classes, "alpha") else np.inf,
        },
        "factors": [factor for factor in factors if factor["columns"]],  # others are of constant columns alone
    }
    _describe(joint, entries)
    return made


def _average(classifier, entries: Entries) -> dict[str, Any]:
    """Return an average: its members with their weights and exponents, their factors, and what questions need."""
    average, schema, constant = classifier.posterior_, classifier.schema_, classifier.constant_
    numbers, categories = arrays.numbers(schema, constant), arrays.categories(schema, constant)
    for column in entries.columns:
        if column["kind"] == "bool":
            column["words"] = _VALUE + BINARY
        elif column["name"] in (*numbers, *constant):
            column["infinite"] = _VALUE + arrays.INFINITE
        if (value := constant.get(column["name"], np.nan)) == value:
            column["constant"] = value
    places = [[entries.place[name] for name in names] for names in (numbers, categories)]
    roster, factors, views = average.roster, [], []
    known = collections.defaultdict(list)  # pairs of a factor and an alternative by member of a part
    for fitted in chain.from_iterable(slot.parts for slot in roster.slots):
        for said, alternatives in fitted.written(*places):
            for member, alternative in zip(fitted.members, alternatives.tolist(), strict=True):
                if alternative >= 0:
                    known[member].append((len(factors), alternative))
            factors.append(_as_json(said, entries, views, fitted.generates))
    takes = [[pair for each in member.factors for pair in known[each]] for member in roster.members]
    for factor in [] if average.leaves is None else leaf_factors(average.leaves.posterior, ()):
        for m in np.flatnonzero(roster.carries):
            takes[m].append((len(factors), 0))
        factors.append(_factor(factor, schema, entries))
    learned, known = np.exp(average.log_class_prior), np.array([average.drawn(member) for member in roster.members])
    spread, looseness = (np.zeros(len(takes)) if v is None else v for v in (average.spread, average.looseness))
    made = {
        "priors": (learned if average.given is None else average.given).tolist(),
        "members": {
            "count": len(takes),
            "log": _logs(average.density_weights),
            "classes": learned.tolist(),
            "weights": average.weights.tolist(),
            "exponents": average.exponents.tolist(),
            "least": roster.least.tolist(),
            "spread": written(np.where(known, np.nan, spread)),  # NaN: the parameters are drawn
            "looseness": written(looseness),
            "total": float((average.class_weight + average.concentration).sum()),
            "takes": takes,
        },
        "views": views,
        "factors": factors,
        "average": {"sharpening": average.sharpening},
        "generative": bool(average.density_weights.any()),
    }
    if not made["generative"]:
        return made
    joint = classifier.joint()
    log, weights = joint.heaviest
    made["average"] |= {"log": _logs(log), "weights": weights.tolist()}
    _describe(joint, entries)
    return made


@np.errstate(divide="ignore")
def _logs(weights) -> list[float]:
    return np.log(weights).tolist()


def _as_json(said, entries: Entries, views: list[Any], generates: bool) -> dict[str, Any]:
    """Return the factor that a family wrote: arrays as lists or packed, entries by their places, views by theirs."""
    result = _arrays(said)
    result["columns"] = [entries.add(entry, density=generates) for entry in said["columns"]]
    if "view" in said:
        view = _arrays(said["view"])
        if view not in views:
            views.append(view)
        result["view"] = views.index(view)
    return result


def _regression(classifier, columns) -> dict[str, Any]:
    """Return a regression: the arrays of its score, and the words for what it does not take."""
    posterior, schema = classifier.posterior_.as_draws(), classifier.schema_
    score = _arrays(posterior.model.written(posterior.flat))
    rows, origins = classifier.statistics_.data["x"] * classifier.scale_ + classifier.centre_, design.origins(schema)
    for column in columns:
        if column["kind"] == "bool":
            column["words"] = f"{{value}} in row 0 {design.NO_BIT}"
        elif column["kind"] != "category" and len(rows):
            values = rows[:, origins.index(column["name"])]
            column["range"] = [float(f"{end:.6g}") for end in (values.min(), values.max())]
    count = len(next(iter(posterior.flat.values())))
    return {
        "missing": not_finite(np.nan),
        "priors": None,
        "members": {"count": count, "log": -np.log(count), "classes": 1 / len(classifier.classes_)},
        "factors": [],
        "score": score | {"centre": classifier.centre_.tolist(), "scale": classifier.scale_.tolist()},
    }


def _learned_from(classifier) -> tuple[float | None, np.ndarray | None]:
    """Return the rows of the fit, and how many of each class where that is known."""
    if classifier.posterior_.kind == "average":
        counts = classifier.posterior_.class_weight
        return float(counts.sum()), counts
    statistics, classes = classifier.statistics_, len(classifier.classes_)
    if isinstance(statistics, PartlyLabelled):
        known = 0.0 if classifier.label_noise else statistics.classes.total().sum()
        return float(known + statistics.weight.sum()), None
    if isinstance(statistics, Rows):
        rows = statistics.data
        counts = np.bincount(rows["t"], weights=rows["weight"], minlength=classes)
    else:
        counts = statistics.classes.total()
    return (float(counts.sum()), counts) if counts.any() else (None, None)  # none are kept of rows in batches


def _columns(classifier) -> list[dict[str, Any]]:
    """Return the columns that the classifier uses, in the order of the fit."""
    schema, found = classifier.schema_, []
    limited = {*schema.reading.limited(schema.used().columns)}
    for column in schema.used().columns:
        block, about = schema.block_of[column], {"name": column, "kind": "number"}
        if block.categories is not None:
            about |= {"kind": "category", "categories": [_told_apart(label) for label in block.categories]}
            about["words"] = f"{listed(block.categories)}; {DECLARE}"
        elif column in schema.dates:
            about |= {"kind": "date", "days": column in schema.reading.days}  # days: later numbers may be days too
            about["form"] = schema.reading.dates[column]
        elif schema.reading.in_days(column):
            about |= {"kind": "duration", "days": column not in schema.reading.spans}
        elif block.kinds[column] == "b":
            about |= {"kind": "bool", "categories": [False, True] if column in schema.bools else [0, 1]}
        else:
            about |= schema.texts_of(column) | ({"limits": True} if column in limited else {})
        if meant := dict(schema.reading.numerals(column).meant):
            about["meant"] = meant
        if column in {limit_of(one) for one in limited}:
            about["told"] = True  # by the text of another column
        found.append(about)
    return found


def _told_apart(label) -> Any:
    """Return a category as JavaScript has it: a whole number that float64 cannot tell from its neighbours is text."""
    return str(label) if isinstance(label, int) and abs(label) > LARGEST_COUNT - 1 else label


def _factor(factor, schema, entries: Entries) -> dict[str, Any]:
    """Return the factor of a leaf: its columns, and its density as the leaf says it."""
    columns, place = entries.columns, entries.place
    (block,) = (block for block in schema.blocks if block.name in (factor.name, *factor.blocks))
    leaf = factor.leaf
    try:
        said = leaf.density(factor.params)
    except NoClosedForm as error:
        drop = Argument("features", "drop", "leave them out of the fit")
        raise InputError(f"columns {listed(block.columns)} cannot be exported: {error}; ", drop) from None
    if said.script:
        entries.kinds[said.kind] = said.script
    elif said.kind not in _KINDS:
        raise ValueError(f"{type(said).__name__}: a program has no density of the kind {said.kind!r}: write script")
    places = [place[column] for column in block.columns]
    for i, about in enumerate(columns[j] for j in places):
        about |= said.about
        if "words" in said.about:
            about["words"] = _VALUE + about["words"]
        if said.kind == "heads":
            about |= {"most": said.trials[i], "words_most": _VALUE + "is more than the tosses"}
        elif said.kind == "tosses" and i:
            about["given"] = True
        if i in said.constant:
            about["constant"] = said.constant[i]
    kept = places if said.kept is None else [places[i] for i in said.kept]
    result: dict[str, Any] = {"kind": said.kind, "columns": kept}
    if said.kind == "gaussian" and said.shift is not None:
        result["columns"] = [entries.add({"of": j, "shift": said.shift}, density=True) for j in result["columns"]]
    groups, classes = len(factor.owner), len(factor.classes_of)
    drawn = () if factor.params is None else (groups // classes,)
    for name, value in said.arrays((*drawn, classes, *leaf.features)).items():
        event = value.shape[value.ndim - said.axes[name] :]
        result[name] = written(value.reshape(groups, *(leaf.features or (1,)), *event))
    result |= {name: value for name in said.settings if (value := getattr(said, name))}
    if said.kind == "list":
        result["size"] = said.mass.shape[-1]
    return result | ({"groups": groups} if groups != classes else {})


def _arrays(said) -> dict[str, Any]:
    """Return a mapping with its arrays as `written`."""
    return {name: written(value) if isinstance(value, np.ndarray) else value for name, value in said.items()}


def written(array: np.ndarray) -> Any:
    """Return numbers as the scorer reads them: one for all, nested lists or, of many, packed."""
    if array.size and (array == array.flat[0]).all():
        return float(array.flat[0])
    return array.tolist() if array.size <= (_READABLE if array.ndim < 4 else _READABLE // 4) else _packed(array)


def _packed(array: np.ndarray) -> dict[str, str]:
    """Return numbers as bytes in base 64, by the type that holds them."""
    kind = "<f4" if array.dtype == np.float32 else "<f8"
    with np.errstate(invalid="ignore"):  # of numbers that no integer holds
        kind = next((whole for whole in ("<u1", "<u2", "<i4") if (array.astype(whole) == array).all()), kind)
    return {kind[1:]: base64.b64encode(np.ascontiguousarray(array, kind).tobytes()).decode()}


def _describe(joint, entries: Entries) -> None:
    """Add to the columns their usual range and drawn rows, which questions need."""
    schema, columns, components = joint.classifier.schema_, entries.columns, joint.components()
    nothing = joint.nothing()
    nothing |= {name: np.zeros_like(nothing[name]) for name in joint.totals()}  # none in none, which is certain
    for entry in list(components.given(nothing).entries()):
        column = columns[entries.place[schema.columns[joint.column(entry.gap)]]]
        if column["kind"] in ("number", "count", "date", "duration"):
            along = entry.along()
            weight = softmax(logsumexp(along.log_joint, axis=0) + along.log_width, axis=1)[0]
            values = np.broadcast_to(along.values, (1, len(weight)))[0]
            order = np.argsort(values)
            level = np.cumsum(weight[order]) - weight[order] / 2
            low, high = np.interp(_USUAL, level, values[order]).tolist()
            digits = 1 - math.floor(math.log10(high - low)) if high > low else 3  # two of the width: 2005 to 2011
            column["range"] = [round(low, digits), round(high, digits)]
    rng = generator(0)
    codes = rng.choice(len(joint.log_prior), _ROWS, p=np.exp(joint.log_prior) / np.exp(joint.log_prior).sum())
    if not joint.totals():
        rows = joint.blocks(joint.components(even=True).draw(joint.nothing(), codes, rng))
        for block in schema.blocks:
            for name, values in zip(block.columns, rows[block.name].reshape(_ROWS, -1).T, strict=True):
                columns[entries.place[name]]["drawn"] = _coded(values, columns[entries.place[name]].get("above"))


def _coded(values, above: float | None) -> list[Any]:
    """Return drawn values (n,) in two bytes each: middle, spread and codes c, of middle + spread sinh((c - 2^15)/1000).

    Codes are a thousandth of the spread apart, or of the distance from the middle; above a bound, of logarithms.
    """
    values = values if above is None else np.log(np.maximum(values - above, 1e-300))
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    spread = high - low or 1.0
    codes = np.rint(1000 * np.arcsinh((values - middle) / spread)) + 2**15
    return [middle, spread, _packed(codes.clip(0, 2**16 - 1))]
