r"""The density of rows and classes that a fitted classifier has, whichever it is: what questions about x alone ask.

A single classifier has its posterior predictive, untempered. The tempered members of an averaged classifier have no
density of x; its untempered members do, under weights that are stacked on log p(x, t) of rows left out.

What a single generative classifier says of missing entries, given what is seen of their rows.

The joint density is a mixture of components: the classes of an exact posterior or of a point, each class under each of
some draws of the parameters otherwise. Given a component, a missing entry is a Student-t or takes values one can list.

What missing values probably are: means, modes and draws of p(missing | observed, data).

.. math:: p(x_m \mid x_o) = \sum_k p(t = k \mid x_o)\, p(x_m \mid t = k, x_o)

averaged over the posterior; with the class known it is the one of its terms. A draw is of the parameters first, one for
all rows, and of classes and entries given them: repeated, that is multiple imputation (Rubin 1987, *Multiple Imputation
for Nonresponse in Surveys*). The rows of a fit by NUTS may have gaps themselves: given their classes and the draws of
the parameters, what is drawn here are draws of their missing entries' posterior.
"""

import abc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from bayesgen.averaging import columns, draws, missing
from bayesgen.core.errors import NoClosedForm
from bayesgen.inspection.averaged import Averaged, refuse_far
from bayesgen.numerics.checks import check_memory
from bayesgen.numerics.pieces import DENSITIES, count_rows, pieces, select_rows
from bayesgen.posterior.posterior import generator
from bayesgen.tables.labels import class_codes, class_labels

Rows = Mapping[str, np.ndarray]  # name of a block -> its entries (n, ...) as floats, NaN where missing


class Joint(abc.ABC):
    """The density p(x, t = k | data) of a classifier, and rows drawn from it.

    Attributes
    ----------
    log_prior : array, shape (K,)
        Log of the class probabilities.
    """

    log_prior: np.ndarray

    @abc.abstractmethod
    def read(self, X) -> Rows:
        """Return the rows as one array a block."""

    @abc.abstractmethod
    def log_density(self, rows: Rows) -> np.ndarray:
        """Log p(x | t = k, data), (n, K), what is missing integrated out."""

    @abc.abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Rows:
        """Rows of the posterior predictive, ``count`` of each class, class by class, each of parameters of its own."""

    def tails(self, rows: Rows) -> np.ndarray | None:
        """P(p(new | k) <= p(x | k)), (n, K), where there is a formula."""
        return None


class SingleJoint(Joint):
    """The joint density of columns and class under one generative model."""

    def __init__(self, classifier):
        self.classifier, even = classifier, np.full(len(classifier.classes_), 1 / len(classifier.classes_))
        self.posterior = classifier.posterior_.with_class_prior(classifier._known(even))
        nothing = classifier._as_model_takes(classifier.schema_.nothing())
        self.log_prior = classifier.posterior_.log_predictive(nothing)[0]

    def read(self, X):
        """Rows by leaf; sparse ones are made dense."""
        rows = self.posterior.model.check(self.classifier._read(X))
        cells = sum(float(np.prod(v.shape)) for v in rows.values() if sparse.issparse(v))
        check_memory("the rows of a sparse matrix, made dense,", int(8 * cells), "give fewer rows at a time")
        return {name: np.asarray(v.toarray() if sparse.issparse(v) else v, float) for name, v in rows.items()}

    def log_density(self, rows):
        """Return the log density of the posterior predictive."""
        return self.posterior.log_predictive(self.classifier._as_model_takes(rows)) + np.log(len(self.log_prior))

    def draw(self, count, rng):
        """Draw rows leaf by leaf."""
        model, params, classes = self.posterior.model, self.posterior.draws(rng, (count,)), len(self.log_prior)
        drawn = {name: leaf.draw(model.site(params, name), rng) for name, leaf in model.leaves.items()}
        drawn = {name: np.asarray(v, float).swapaxes(0, 1) for name, v in drawn.items()}
        return {name: v.reshape(classes * count, *v.shape[2:]) for name, v in drawn.items()}

    def tails(self, rows):
        """By the one leaf of a model, where its posterior is exact."""
        leaves = self.posterior.model.leaves
        if self.posterior.kind != "exact" or len(leaves) > 1:
            return None
        ((name, leaf),) = leaves.items()
        try:
            return leaf.tail_probability(rows[name]).reshape(-1, len(self.log_prior))
        except NoClosedForm:
            return None


class AveragedJoint(Joint):
    """Of the untempered members of an average."""

    def __init__(self, classifier):
        self.classifier, self.average = classifier, classifier.average_
        self.log_prior = self.average.log_class_prior

    def read(self, X):
        """Return the numbers of the rows, and the codes of their categories."""
        x, c = self.classifier._read(X)
        return {"numbers": x, "categories": np.where(c < 0, np.nan, c)}

    def log_density(self, rows):
        """Of the members, in the units of the columns."""
        return self.average.log_joint(*self.arrays(rows)) - self.log_prior

    @staticmethod
    def arrays(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Numbers, and codes of categories, -1 where missing, as the engine takes them."""
        c = rows["categories"]
        return rows["numbers"], np.where(np.isnan(c), -1, c).astype(np.intp)

    def draw(self, count, rng):
        """Each row of a member of its own."""
        x, c = draws.rows(self.average, np.repeat(np.arange(len(self.log_prior)), count), rng)
        return {"numbers": x, "categories": c.astype(float)}


def joint_of(classifier, question: str) -> Joint:
    """The joint density of a fitted classifier, or an error where it has none."""
    check_is_fitted(classifier)
    if not hasattr(classifier, "score_samples"):
        raise ValueError(f"{question} asks for the density of a row: it needs a generative classifier")
    return (AveragedJoint if isinstance(classifier, Averaged) else SingleJoint)(classifier)


_MASS = 1e-9  # of a count that may be left out
_MOST = 1 << 16  # values of a count that are listed


@dataclass(frozen=True)
class Table:
    """A finite entry, or a count: its values (V,) and their log probabilities under each component, (S, K, V)."""

    values: np.ndarray
    log_mass: np.ndarray


@dataclass(frozen=True)
class Gap:
    """A column with missing entries.

    Attributes
    ----------
    block : str
        Its leaf.
    place : int
        Its place among the columns of the leaf.
    column : int
        Its place among the columns of the table.
    rows : int array
        Where it is missing.
    """

    block: str
    place: int
    column: int
    rows: np.ndarray


class Components:
    """The components of a single classifier.

    Parameters
    ----------
    joint : SingleJoint
    draws : int
        Draws of the parameters, where the posterior is neither exact nor a point.
    """

    def __init__(self, joint: SingleJoint, draws: int):
        posterior = joint.classifier.posterior_
        self.classifier, self.model, self.params = joint.classifier, posterior.model, None
        if posterior.kind == "point":
            self.params = posterior.draws(0, (1,))
        elif posterior.kind == "draws":
            self.params = posterior.draws(generator(joint.classifier.random_state), (draws,))
        self.count = 1 if self.params is None else len(next(iter(self.params.values())))
        self._tables: dict[tuple[str, int], Table] = {}

    def log_weight(self, rows: Rows) -> np.ndarray:
        """Log p(x, t = k | θ) of rows under every component, (S, K, n)."""
        if self.params is None:
            return self.model.log_predictive(self.classifier._as_model_takes(rows)).T[None]
        return self.model.log_likelihood_rows(self.params, rows)

    def is_number(self, block: str) -> bool:
        """Whether a leaf is of numbers."""
        return self.model.leaves[block].density_kind == "density"

    def is_label(self, block: str) -> bool:
        """Whether a leaf is of categories or bits, which have no mean."""
        return any(b.name == block and b.categories is not None for b in self.classifier.schema_.blocks) or (
            self.model.leaves[block].cardinality(0) == 2
        )

    def student(self, block: str, rows: Rows):
        """Location, scale and degrees of freedom, (S, K, n or 1, D or 1) each, of a leaf of numbers."""
        leaf, x = self.model.leaves[block], rows[block].reshape(len(rows[block]), -1)
        own = rows[block] if not leaf.event_dim else x
        if self.params is None:
            return tuple(part[None] for part in _filled(leaf.student(own)))
        return _filled(leaf.student(own, self.model.site(self.params, block)))

    def table(self, gap: Gap) -> Table:
        """Values and probabilities of a finite entry or a count, which other entries of the row do not move."""
        key = gap.block, gap.place
        if key not in self._tables:
            size = self.model.leaves[gap.block].cardinality(gap.place)
            self._tables[key] = self._listed(*key, size) if size else self._counted(*key)
        return self._tables[key]

    def _listed(self, block, place, size) -> Table:
        leaf, values = self.model.leaves[block], np.arange(size, dtype=float)
        width = int(np.prod(leaf.features)) if leaf.features else 1
        x = np.full((size, width), np.nan)
        x[:, place] = values
        x = leaf.check(x.reshape(size, *leaf.features))
        if self.params is None:
            return Table(values, leaf.log_predictive(x).reshape(size, -1).T[None])
        return Table(values, leaf.log_likelihood_rows(self.model.site(self.params, block), x))

    def _counted(self, block, place) -> Table:
        size = 64
        while True:
            table = self._listed(block, place, size)
            if np.exp(table.log_mass).sum(-1).min() > 1 - _MASS or size >= _MOST:
                return table
            size *= 4


def _filled(parts):
    """Arrays of as many axes as the first."""
    return tuple(part.reshape((1,) * (parts[0].ndim - part.ndim) + part.shape) for part in parts)


def gaps_of(schema, rows: Rows) -> Iterator[Gap]:
    """The columns that have missing entries."""
    for block in schema.blocks:
        missing = np.isnan(rows[block.name].reshape(len(rows[block.name]), -1))
        for place in np.flatnonzero(missing.any(0)):
            column = schema.columns.index(block.columns[place])
            yield Gap(block.name, int(place), column, np.flatnonzero(missing[:, place]))


def refuse_totals(joint: Joint, question: str, rows: Rows | None = None) -> None:
    """Raise where a leaf is modelled given its total; of ``rows``, where an entry is missing, and the total with it."""
    if not isinstance(joint, SingleJoint):
        return  # the averaged classifier has no such leaves
    model = joint.classifier.model_
    for name, leaf in model.leaves.items():
        if leaf.density_kind.startswith("probability given") and (rows is None or np.isnan(rows[name]).any()):
            columns = model.columns_of(name) or (name,)
            raise ValueError(
                f"{question} has no answer for {name!r} (columns such as {columns[0]!r}): its model is a "
                f"{leaf.density_kind}"
                + ("; leave these columns out of the fit" if rows is None else ", and entries are missing")
            )


_DRAWS = 500  # of the parameters, for means where the posterior is draws


def impute(classifier, X, y=None, draws: int = 0):
    """Fill the missing entries of rows: by what is most to be expected, or with draws.

    Without draws a number or a count is its mean (of a log-normal column exp of the mean logarithm, as a mean need not
    exist), a category or a bit the most probable one; of an averaged classifier, whose columns are bent, a number is
    its median. Gaps are taken as ignorable: that an entry is missing says nothing of its value.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        Whose joint density is asked, untempered.
    X : DataFrame or array, shape (n, columns)
        Rows.
    y : array, shape (n,), optional
        Classes of the rows, where they are known, as those of the fit are.
    draws : int, default 0
        How many tables to draw; each has parameters of its own.

    Returns
    -------
    DataFrame or array, shape (n, columns), or a list of ``draws`` of them
        A DataFrame, with the index of X, where the fit had column names. What was seen is as it was, but that dates
        are of the type datetime64, in UTC.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = GaussianDiscriminantClassifier(random_state=0).fit(X, y)
    >>> row = [[6.0, 2.7, np.nan, 1.6]]
    >>> impute(classifier, row).round(1)
    array([[6. , 2.7, 4.8, 1.6]])
    >>> [float(table[0, 2].round(1)) for table in impute(classifier, row, draws=2)]
    [4.7, 4.8]
    """
    joint = joint_of(classifier, "impute()")
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 0:
        raise ValueError(f"draws must be a whole number >= 0, got {draws!r}")
    codes = None
    if y is not None:
        codes = class_codes(class_labels(y), classifier.classes_)[1]
    rows, rng = joint.read(X), generator(classifier.random_state)
    count = count_rows(rows)
    if codes is not None and len(codes) != count:
        raise ValueError(f"X has {count} rows and y has {len(codes)}; they must be of one length")
    single = isinstance(joint, SingleJoint)
    refuse_totals(joint, "impute()", rows)
    if not single:
        refuse_far(classifier, rows["numbers"], "impute()")
    if not draws:
        return _table(classifier, X, (_expected if single else _expected_of_average)(joint, rows, codes), single)
    filled = (_drawn if single else _drawn_of_average)(joint, rows, codes, draws, rng)
    return [_table(classifier, X, own, single) for own in filled]


def _table(classifier, X, rows, single: bool):
    """Rows in the form of the fit, with the index of X."""
    if not single:
        c = rows["categories"].astype(np.intp)
        rows = columns.blocks(classifier.schema_, rows["numbers"], c, classifier.constant_)
    result = classifier._like_fit(classifier.schema_.write(rows))
    if hasattr(result, "index") and hasattr(X, "index") and not callable(X.index):
        result.index = X.index
    return result


def _expected(joint, rows, codes):
    components, schema = Components(joint, _DRAWS), joint.classifier.schema_
    result = {name: v.copy() for name, v in rows.items()}
    flat = {name: v.reshape(len(v), -1) for name, v in result.items()}
    width = components.count * len(joint.log_prior) * max(v.shape[1] for v in flat.values())
    incomplete = np.flatnonzero(sum(np.isnan(v).any(1) for v in flat.values()))
    for piece in pieces(len(incomplete), width, DENSITIES):
        own = incomplete[piece]
        part = select_rows(rows, own)
        score = components.log_weight(part)
        if codes is not None:
            score = np.where(np.arange(score.shape[1])[:, None] == codes[own], score, -np.inf)
        weight = softmax(score, axis=(0, 1))
        students = {}
        for gap in gaps_of(schema, part):
            at = own[gap.rows]
            if components.is_number(gap.block):
                if gap.block not in students:
                    location = components.student(gap.block, part)[0]
                    mean = np.einsum("skn,skn...->n...", weight, location + 0 * weight[..., None])
                    students[gap.block] = components.model.leaves[gap.block].back(mean)
                flat[gap.block][at, gap.place] = students[gap.block][gap.rows, gap.place]
            else:
                table = components.table(gap)
                chance = np.einsum("skn,skv->nv", weight[..., gap.rows], np.exp(table.log_mass))
                label = components.is_label(gap.block)
                flat[gap.block][at, gap.place] = (
                    table.values[chance.argmax(1)] if label else chance @ table.values / chance.sum(1)
                )
    return result


def _drawn(joint, rows, codes, draws, rng):
    posterior = joint.classifier.posterior_
    model, params = posterior.model, posterior.draws(rng, (draws,))
    incomplete = np.flatnonzero(sum(np.isnan(v.reshape(len(v), -1)).any(1) for v in rows.values()))
    part = select_rows(rows, incomplete)
    for i in range(draws):
        one = {site: v[i : i + 1] for site, v in params.items()}
        if codes is None:
            score = np.cumsum(softmax(model.log_likelihood_rows(one, part)[0], axis=0), axis=0)
            t = (rng.random(len(incomplete)) * score[-1] > score[:-1]).sum(0)
        else:
            t = codes[incomplete]
        result = {name: v.copy() for name, v in rows.items()}
        for name, leaf in model.leaves.items():
            own = {site: v[0] for site, v in model.site(one, name).items()}
            for k in np.unique(t):
                at = incomplete[t == k]
                result[name][at] = leaf.fill(rows[name][at], leaf.select_class(own, int(k)), rng)
        yield result


def _expected_of_average(joint, rows, codes):
    x, c = joint.arrays(rows)
    numbers, categories = missing.expected(joint.average, x, c, codes)
    return {"numbers": numbers, "categories": categories}


def _drawn_of_average(joint, rows, codes, draws, rng):
    x, c = joint.arrays(rows)
    for _ in range(draws):
        numbers, categories = missing.draw(joint.average, x, c, rng, codes)
        yield {"numbers": numbers, "categories": categories}
