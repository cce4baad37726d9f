r"""Members that the user passes: any classifier with ``predict_proba``, judged by the folds of the average.

With p(k | x) from the classifier and π the class frequencies of the rows that it was fitted to, log p(k | x) - log π
takes the place of log p(x | k). It is cloned for each fold and for all rows, and gets the rows as the user gave them.

Later rows, and rows with an entry taken away, are rebuilt from their entries, which are float64 and codes of
categories; where the classifier takes no gaps, with medians and most frequent categories in them. A rebuilt column has
its type at fit where that holds every value, else it stays float64: 2.5 reaches the classifier as 2.5 though the fit
saw whole numbers. What entries cannot give back is refused (`refuse_changed`). What it returns is checked: at the fit,
a classifier whose probabilities are none is left out with a warning; later, an error names it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from bayesgen.averaging.member import FittedMembers, Member
from bayesgen.averaging.member_rows import Rows, log_frequencies, without_entries
from bayesgen.core.errors import NoClosedForm, listed, warn
from bayesgen.numerics.pieces import taken
from bayesgen.tables import arrays
from bayesgen.tables.schema import Schema, side_by_side
from bayesgen.tables.table import Table

_EXACT = 2.0**53  # up to it, every whole number is a float64
_FOLDS = 5
_LEAST = 1e-12  # of a probability: its logarithm is finite
_OFF = 1e-3  # by which a sum of probabilities, perhaps of float32, may miss 1


@dataclass(frozen=True)
class Given:
    """Rows of a fit as they came."""

    table: Table  # the rows
    labels: Any  # (n,): their classes, as the user names them
    classes: np.ndarray  # (K,): all classes, in order
    weight: np.ndarray | None  # (n,), or None: their weights, where the user gave any
    schema: Schema  # types and categories of the columns
    constant: tuple[str, ...]  # columns that the other members do not see
    places: np.ndarray | None = None  # (m,), or None: places of the rows to learn from; None for all, in order

    def rows(self, places) -> "Given":
        """Return those at some places among the rows to learn from."""
        return replace(self, places=places if self.places is None else self.places[places])

    def chosen(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return the rows to learn from as a table of the user's kind, with labels and weights, in the order given."""
        if self.places is None:
            return self.table.native, self.labels, self.weight
        places = np.sort(self.places)
        return self.table.rows(places).native, self.labels[places], taken(self.weight, places)

    def shape(self) -> "Shape":
        """Return what other rows are rebuilt by."""
        held = np.fmax.reduce(arrays.columns(self.schema, self.schema.read(self.table), self.constant), 0)
        first = self.table.rows(np.arange(1)).native
        return Shape(self.schema, dict(zip(self.constant, held.tolist(), strict=True)), first)


@dataclass(frozen=True)
class Shape:
    """The types and names by which entries, as members take them, become rows of the kind that the user gave."""

    schema: Schema  # types and categories of the columns
    constant: Mapping[str, Any]  # columns that the entries lack, and what they always held
    first: Any  # the first row of the fit

    def rebuilt(self, x, c) -> Any:
        """Return rows (n, D) and (n, F) as a table or array, in the types of the fit where these hold the values."""
        blocks = arrays.blocks(self.schema, x, c, None, tuple(self.constant), self.constant)
        whole = {name: values if values.dtype.kind == "f" else values.clip(0) for name, values in blocks.items()}
        result, first = self.schema.write(whole), Table(self.first)
        for name, codes in zip(arrays.categories(self.schema, self.constant), c.T, strict=True):
            if (codes < 0).any():
                result[name] = result[name].astype(object)
                result[name][codes < 0] = None
        if first.names is None:
            return _cast(side_by_side(result.values()), self.first.dtype)
        if self.schema.library != "pandas":
            import narwhals as nw

            library: Any = self.schema.library
            return nw.from_dict({name: values.tolist() for name, values in result.items()}, backend=library).to_native()
        frame = pd.DataFrame(result)
        frame.columns = self.first.columns
        for name, kind in self.first.dtypes.items():
            frame[name] = _cast(frame[name], kind)
        return frame


def _cast(values: Any, kind) -> Any:
    """Return an array or column as another type if that holds every value and gap, else unchanged."""
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            result = values.astype(kind)
        seen = ~pd.isna(values)
        same = (pd.isna(result) == ~seen).all() and (result[seen].astype(values.dtype) == values[seen]).all()
    except (TypeError, ValueError, OverflowError):  # whole numbers of pandas' own types refuse a fraction
        return values
    return result if same else values


def refuse_changed(names, table: Table, schema: Schema) -> None:
    """Raise if the user's classifiers, of these names, would see later rows in another form than at the fit."""
    refuse_long(names, table, schema)
    if dropped := [column for column in schema.columns if column not in schema.used().columns]:
        raise ValueError(
            f"features drops the columns {listed(dropped)}, which members={listed(names)}, classifiers of your own, "
            "would see at the fit and never again: leave them out of X instead"
        )
    if text := [c for c in schema.dates if any(isinstance(value, str) for value in table.labels(c))]:
        raise ValueError(
            f"columns {listed(text)} hold dates as text, and members={listed(names)}, classifiers of your own, would "
            "get dates later: give them as dates, by pandas.to_datetime(format=...)"
        )


def refuse_long(names, table: Table, schema: Schema) -> None:
    """Raise if a whole number beyond 2^53 is no float64, by which classifiers of the user's see later rows."""
    for column in arrays.numbers(schema) if table.names is not None else table.columns:
        values = table.labels(column)
        if values.dtype.kind not in "iuO" or (values.dtype.kind == "O" and column in schema.dates):
            continue
        numbers: Any = pd.to_numeric(values, errors="coerce")
        for row in np.flatnonzero(np.abs(numbers.astype(float)) >= _EXACT):
            if isinstance(values[row], int | np.integer) and int(float(values[row])) != values[row]:
                raise ValueError(
                    f"column {column!r}: {values[row]} in row {row} is a whole number beyond 2^53 that no float64 "
                    f"holds, by which members={listed(names)}, classifiers of your own, see later rows: give it as "
                    "text, or leave the column out of X"
                )


@dataclass(frozen=True, eq=False)
class OutsideMember(Member):
    """A classifier of the user's."""

    outside: ClassVar = True

    name: str  # the name that the user gave it
    estimator: Any  # the classifier, which is not fitted itself

    @property
    def family(self) -> str:
        return self.name

    @classmethod
    def propose(cls, rows, setting):
        """Propose what the user passed, each by itself."""
        return [(cls(name, estimator),) for name, estimator in setting.pairs]

    @classmethod
    def fit(cls, groups, training):
        return [OutsideMembers.of(member, training.rows, training.given, training.seed) for (member,) in groups]

    @classmethod
    def fit_and_leave_out(cls, groups, training, out, fold):
        """Fit each to all rows and without each of five folds; one that fails is left out with a warning."""
        fitted, density = [], []
        for group in groups:
            try:
                fits, scores = super().fit_and_leave_out([group], training, out, fold % _FOLDS)
            except Exception as error:  # whatever a classifier of the user's may raise
                warn(f"member {group[0].name!r} failed and takes no part: {type(error).__name__}: {error}")
            else:
                fitted, density = [*fitted, *fits], [*density, *scores]
        weighted = training.given is not None and training.given.weight is not None
        if deaf := [
            fits.members[0].name
            for fits in fitted
            if weighted and not has_fit_parameter(fits.estimator, "sample_weight")
        ]:
            warn(f"members {deaf} take no sample_weight: all rows count the same for them")
        return fitted, density

    def settings(self):
        return {"kind": self.name}


@dataclass(frozen=True, eq=False)
class OutsideMembers(FittedMembers):
    """A classifier of the user's, fitted."""

    members: tuple[OutsideMember, ...]  # the one member
    estimator: Any  # the fitted classifier
    place: np.ndarray  # (k,): the class of each of its columns
    shape: Shape  # what rows are rebuilt by
    # numbers (D,) and categories (F,) in place of gaps, if the classifier takes none
    middle: tuple[np.ndarray, np.ndarray] | None
    log_prior: np.ndarray  # (K,): log class frequencies
    rows: int  # rows of the fit

    @classmethod
    def of(cls, member: OutsideMember, rows: Rows, given: Any, seed: int) -> "OutsideMembers":
        """Fit a clone of the member to rows as they were given."""
        estimator: Any = clone(member.estimator)
        for key, value in estimator.get_params().items():
            if value is None and key.split("__")[-1] == "random_state":
                estimator.set_params(**{key: int(seed) % (1 << 31)})
        table, labels, weight = given.chosen()
        weighs = weight is not None and has_fit_parameter(estimator, "sample_weight")
        estimator.fit(table, labels, **({"sample_weight": weight} if weighs else {}))
        code = {label: k for k, label in enumerate(given.classes.tolist())}
        place = np.array([code[label] for label in np.asarray(estimator.classes_).tolist()])
        codes = [code[label] for label in labels.tolist()]
        log_prior = log_frequencies(codes, weight if weighs else None, len(code))
        shape = given.shape()
        gap = np.full((1, rows.x.shape[1]), np.nan), np.full((1, rows.c.shape[1]), -1)
        try:
            estimator.predict_proba(shape.rebuilt(*gap))
            middle = None
        except Exception:  # what a classifier raises where it takes no gaps is its own
            modes = [np.bincount(column[column >= 0], minlength=1).argmax() for column in rows.c.T]
            middle = np.nanmedian(rows.x, axis=0), np.array(modes, np.intp)
        return cls((member,), estimator, place, shape, middle, log_prior, len(rows))

    @property
    def least(self) -> float:
        return 0.5 * len(self.log_prior) / self.rows

    def written(self, numbers, categories):
        """Raise: no program without Python knows the user's classifier."""
        member = self.members[0]
        raise NoClosedForm(
            f"its member {member.name!r}, a {type(member.estimator).__name__}, is a classifier of your own; fit the "
            "average without it"
        )

    def log_density(self, x, c, used) -> np.ndarray:
        nothing = without_entries(x, c)
        if self.middle is not None:
            x, c = np.where(np.isnan(x), self.middle[0], x), np.where(c < 0, self.middle[1], c)
        probability = np.zeros((len(x), len(self.log_prior)))
        if len(x):
            found = self.estimator.predict_proba(self.shape.rebuilt(x, c))
            probability[:, self.place] = _checked(found, (len(x), len(self.place)), self.members[0].name)
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
