"""Laws that hold for any data: hypothesis looks for the shape, scale, offset, weight or gap that breaks one.

Rounding. An entry near an offset c of columns with spread s is known to eps c, so what depends on deviations is known
to eps c / s relatively, however it is computed; `Rows.loss` is eps (1 + c / s), the unit of every tolerance here. What
solves with a covariance multiplies it by that matrix's condition number.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesgen import GaussianDiscriminantClassifier, NaiveBayesClassifier
from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    GaussianDiscriminant,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownVariance,
)

EXAMPLES = 30  # of each property and kind of model
EPS = np.finfo(float).eps
some = settings(max_examples=EXAMPLES, derandomize=True, deadline=None, database=None)
pytestmark = pytest.mark.filterwarnings("ignore:columns .* are constant:UserWarning")


@dataclass(frozen=True)
class Rows:
    """Rows with classes, weights and gaps; z are the standard normal numbers in them."""

    rng: np.random.Generator
    t: np.ndarray
    classes: int
    z: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    weight: np.ndarray
    gaps: np.ndarray

    @property
    def x(self):
        return self.offset + self.scale * self.z

    @property
    def loss(self):
        return EPS * (1 + np.max(np.abs(self.offset) / self.scale))


@st.composite
def rows(draw, least=1, most=10):
    """Up to 10 rows of up to 5 columns in up to 4 classes, some with one row or none; D > n among them."""
    n, width, classes = draw(st.integers(least, most)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = 10.0 ** np.array(draw(st.lists(st.integers(-12, 12), min_size=width, max_size=width)))
    far = draw(st.lists(st.sampled_from([0.0, 1.0, -1e4, 1e8]), min_size=width, max_size=width))
    t = rng.integers(0, draw(st.integers(1, classes)), n)
    weight = draw(st.sampled_from([np.ones(n), rng.integers(0, 4, n).astype(float), rng.uniform(0.1, 2.0, n)]))
    gaps = rng.random((n, width)) < draw(st.sampled_from([0.0, 0.3]))
    z = rng.standard_normal((n, width)) + t[:, None]
    return Rows(rng, t, classes, z, scale, scale * np.array(far), weight, gaps)


def bits(d):
    return (d.z > 0.5).astype(float)


def counts(d):
    return np.floor(np.exp(np.clip(d.z, -3, 4)))


def tosses(d):
    return np.minimum(counts(d), 5)


def codes(d):
    return np.clip(np.floor(d.z + 1), 0, 2)


# Leaves by width of a block, and their rows; priors in the columns' own units, not at their centre.
KINDS = {
    "bernoulli": (lambda d: BetaBernoulli(np.full(d.z.shape[1], 1.5), 0.7), bits),
    "binomial": (lambda d: BetaBinomial(np.full(d.z.shape[1], 1.5), 0.7, trials=5), tosses),
    "categorical": (lambda d: DirichletCategorical(np.full((d.z.shape[1], 3), [0.4, 1.0, 2.0])), codes),
    "poisson": (lambda d: GammaPoisson(np.full(d.z.shape[1], 1.5), 0.7), counts),
    "multinomial": (lambda d: DirichletMultinomial(np.full(d.z.shape[1], 0.7)), counts),
    "known variance": (lambda d: NormalKnownVariance(d.offset - d.scale, 3 * d.scale, 2 * d.scale), lambda d: d.x),
    "scalars": (lambda d: NormalInverseGamma(d.offset - d.scale, 0.5, 1.5, d.scale**2), lambda d: d.x),
    "vectors": (
        lambda d: NormalInverseWishart(d.offset - d.scale, 0.5, d.z.shape[1] + 1.0, np.diag(d.scale**2)),
        lambda d: d.x,
    ),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def leaf_and_rows(kind, d):
    """A leaf and its rows with gaps; vectors and bags miss rows as a whole."""
    make, values = KINDS[kind]
    leaf, x = make(d), values(d)
    x[np.repeat(d.gaps[:, :1], x.shape[1], 1) if leaf.event_dim else d.gaps] = np.nan
    return leaf, x


def parts(statistics):
    """Arrays of statistics with the unit of each: sums as they are, moments in powers of the scale."""
    if hasattr(statistics, "sums"):
        return [(statistics.sums, 0), (statistics.base, 0)]
    moments = getattr(statistics, "moments", statistics)
    return [(moments.n, 0), (moments.mean, 1), (moments.scatter, 2)]


def assert_same(one, two, d, factor=1.0):
    """Statistics agree: to `loss` in the units of the columns, times what sums of a hundred terms add to it."""
    assert type(one) is type(two) and getattr(one, "patterns", ()) == getattr(two, "patterns", ())
    for (a, power), (b, _) in zip(parts(one), parts(two), strict=True):
        unit = np.ones(()) if power == 0 else d.scale
        if power == 2 and np.ndim(a) >= 2 and a.shape[-2:] == (len(d.scale),) * 2 and _vector(one):
            unit = np.outer(d.scale, d.scale)
        elif power == 2:
            unit = d.scale**2
        size = 1 + np.abs(a / unit).max(initial=0)
        tolerance = (EPS if power == 0 else d.loss) * 100 * size * factor
        np.testing.assert_allclose(a / unit, b / unit, rtol=0, atol=tolerance)


def _vector(statistics):
    return getattr(statistics, "moments", statistics).vector


# -- statistics --------------------------------------------------------------------------------------------------------


@kinds
@given(d=rows())
@some
def test_pieces_in_any_order_make_the_whole_and_merging_is_associative(kind, d):
    leaf, x = leaf_and_rows(kind, d)
    whole = leaf.statistics(x, d.t, d.classes, d.weight)
    cuts = np.split(d.rng.permutation(len(x)), np.sort(d.rng.integers(0, len(x) + 1, 2)))
    a, b, c = (leaf.statistics(x[i], d.t[i], d.classes, d.weight[i]) for i in cuts)
    for one, two, three in itertools.permutations((a, b, c)):
        assert_same((one + two) + three, whole, d)
        assert_same(one + (two + three), whole, d)


@given(d=rows(2))
@some
def test_pieces_of_vectors_with_gaps_bring_patterns_of_their_own(d):
    if d.z.shape[1] == 1:
        return  # a gap in the one column is a row that is missing as a whole
    leaf, x = KINDS["vectors"][0](d), np.where(d.gaps, np.nan, d.x)
    x[:2] = d.x[:2]
    x[:2, 0] = np.nan  # so that each piece has a gap
    half = np.arange(len(x)) % 2 == 0
    one, two = (leaf.statistics(x[i], d.t[i], d.classes, d.weight[i]) for i in (half, ~half))
    whole = leaf.statistics(x, d.t, d.classes, d.weight)
    assert_same(one + two, whole, d)
    assert_same(two + one, whole, d)


@kinds
@given(d=rows())
@some
def test_taking_away_undoes_adding(kind, d):
    leaf, x = leaf_and_rows(kind, d)
    one, two = d.rng.random((2, len(x))) < 0.6
    a, b = (leaf.statistics(x[i], d.t[i], d.classes, d.weight[i]) for i in (one, two))
    # What is left is known to the rounding of the whole, and its mean to that times (rows taken)/(rows left).
    factor = 100.0 if kind in ("known variance", "scalars", "vectors") else 1.0
    assert_same((a + b) - b, a, d, factor)


@kinds
@given(d=rows())
@some
def test_rows_columns_and_classes_have_no_order(kind, d):
    leaf, x = leaf_and_rows(kind, d)
    whole = leaf.statistics(x, d.t, d.classes, d.weight)
    order = d.rng.permutation(len(x))
    assert_same(leaf.statistics(x[order], d.t[order], d.classes, d.weight[order]), whole, d)
    names = d.rng.permutation(d.classes)
    renamed = leaf.statistics(x, names[d.t], d.classes, d.weight)
    for (a, _), (b, _) in zip(parts(renamed), parts(whole), strict=True):
        np.testing.assert_allclose(a[names] if np.ndim(a) else a, b, rtol=1e-14)


# -- evidence ----------------------------------------------------------------------------------------------------------


@kinds
@given(d=rows())
@some
def test_evidence_is_a_chain_of_predictives(kind, d):
    """Log p(x_1..x_n) = Σ log p(x_i | x_1..x_{i-1}), and the same by halves, whatever the order."""
    leaf, x = leaf_and_rows(kind, d)
    whole = leaf.log_evidence(leaf.statistics(x))
    total, now = 0.0, leaf
    for row in x[d.rng.permutation(len(x))]:
        total += now.log_predictive(row[None])[0]
        now = now.update(now.statistics(row[None]))
    half = d.rng.random(len(x)) < 0.5
    first, second = leaf.statistics(x[half]), leaf.statistics(x[~half])
    # Some tens of log terms for each row; of vectors, solved with a scale of condition number below 1e4.
    size = 1 + abs(whole) + x.size * (1 + np.abs(np.log(d.scale)).max())
    tolerance = (1e4 if kind == "vectors" else 100) * d.loss * size
    assert abs(total - whole) <= tolerance
    assert abs(leaf.log_evidence(first) + leaf.update(first).log_evidence(second) - whole) <= tolerance


# -- classifiers -------------------------------------------------------------------------------------------------------

MODELS = {
    **{
        f"{covariance}{' shared' * shared}": (
            GaussianDiscriminantClassifier, {"covariance": covariance, "shared": shared}
        )
        for covariance in ("full", "diagonal", "isotropic")
        for shared in (False, True)
    },
    "naive Bayes": (NaiveBayesClassifier, {"features": "gaussian"}),
}  # fmt: skip
AGAIN = "diagonal shared", "isotropic", "isotropic shared"  # the second command has them
models = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.compiles] * (name in AGAIN)) for name in MODELS]
)


def learn(name, d, x, t=None, **kwargs):
    cls, given = MODELS[name]
    t = d.t if t is None else t
    return cls(**given | kwargs).partial_fit(x, t, classes=np.arange(d.classes), sample_weight=d.weight)


def usable(d):
    """Without a row there is nothing to follow, and a constant column takes the variance 1, whatever its unit."""
    x = d.z[d.weight > 0]
    return len(x) > 1 and (np.ptp(x, axis=0) > 0.01).all()


def common(d, name):
    """Isotropic covariances know one unit for all columns."""
    if not name.startswith("isotropic"):
        return d
    offset = d.offset / d.scale * d.scale[0]
    return Rows(d.rng, d.t, d.classes, d.z, np.full_like(d.scale, d.scale[0]), offset, d.weight, d.gaps)


def slack(d, classifier):
    """Tolerance of log probabilities: `loss`, times the condition number, times the size of the terms."""
    leaf = classifier.posterior_.model.leaves["gaussian"]
    condition = 1.0
    if hasattr(leaf, "scale"):
        sd = np.sqrt(np.diagonal(leaf.scale, axis1=-2, axis2=-1))
        condition = np.linalg.cond(leaf.scale / (sd[..., :, None] * sd[..., None, :])).max()
    # A prior worth 0.01 rows makes a class of few rows feel every digit of its mean a hundred times.
    return 1e3 * d.loss * condition * (1 + d.z.size)


@models
@given(d=rows(2))
@some
def test_shift_scale_and_order_do_not_matter(name, d):
    """Under "weak" priors probabilities are the same in any units, of any order of rows, columns and classes."""
    d = common(d, name)
    if not usable(d):
        return
    plain = learn(name, d, d.z)
    units = learn(name, d, d.x)
    want, tolerance = plain.predict_log_proba(d.z), slack(d, plain)
    np.testing.assert_allclose(units.predict_log_proba(d.x), want, rtol=tolerance, atol=tolerance)
    # The evidence is a density: it has the units of one over each column, once a row.
    volume = d.weight.sum() * np.log(d.scale).sum()
    size = 1 + abs(plain.log_evidence_) + abs(volume)
    assert abs(units.log_evidence_ + volume - plain.log_evidence_) <= tolerance * size
    columns, names = d.rng.permutation(d.z.shape[1]), d.rng.permutation(d.classes)
    turned = learn(name, d, d.x[:, columns], names[d.t])
    np.testing.assert_allclose(
        turned.predict_log_proba(d.x[:, columns])[:, names], want, rtol=tolerance, atol=tolerance
    )


@given(d=rows(2))
@some
def test_weak_priors_follow_the_spread_within_classes(d):
    """Their variance is Σ w (x - mean of the class)² / (N - K), K the classes with a row; where N > K."""
    present = [d.t == k for k in range(d.classes) if d.weight[d.t == k].sum() > 0]
    freedom = d.weight.sum() - len(present)
    squares = sum(d.weight[own] @ (d.z[own] - np.average(d.z[own], 0, d.weight[own])) ** 2 for own in present)
    if freedom < 0.5 or (squares < 1e-3).any():
        return  # the total variance stands in
    unit = NormalInverseGamma(np.zeros(d.z.shape[1]), 1.0, 1.0, 1.0)
    prior = NormalInverseGamma.weak(unit.statistics(d.z, d.t, d.classes, d.weight))
    np.testing.assert_allclose(prior.beta, squares / freedom, rtol=1e-11)
    np.testing.assert_allclose(prior.mean, np.average(d.z, 0, d.weight), rtol=1e-11, atol=1e-13)


@given(d=rows())
@some
def test_a_full_prior_transformed_with_the_data_says_the_same(d):
    """For x' = Ax + b, m' = Am + b, Ψ' = AΨA': densities are divided by |A|, probabilities stay."""
    dim = d.z.shape[1]
    A, b = d.rng.standard_normal((dim, dim)) + 2 * np.eye(dim), d.rng.standard_normal(dim)
    root = np.tril(d.rng.standard_normal((dim, dim)), -1) + np.eye(dim)
    mean, psi = d.rng.standard_normal(dim), root @ root.T
    classes = DirichletCategorical(1.0, d.classes)
    condition = np.linalg.cond(A) ** 2 * np.linalg.cond(psi)
    for shared in (False, True):
        plain, moved = (
            GaussianDiscriminant(classes, NormalInverseWishart(m, 0.7, dim + 1.0, (p + p.T) / 2), shared=shared)
            for m, p in ((mean, psi), (A @ mean + b, A @ psi @ A.T))
        )
        x = d.z @ A.T + b
        one, two = plain.statistics(d.z, d.t), moved.statistics(x, d.t)
        volume = np.linalg.slogdet(A)[1]
        want = plain.update(one).log_predictive(d.z) - volume
        tolerance = 1e3 * EPS * condition * (1 + np.abs(want).max())
        np.testing.assert_allclose(moved.update(two).log_predictive(x), want, rtol=0, atol=tolerance)
        want = plain.log_evidence(one) - len(x) * volume
        assert abs(moved.log_evidence(two) - want) <= 1e3 * EPS * condition * (1 + abs(want)) * (1 + d.z.size)


@models
@given(d=rows(), inference=st.sampled_from(["exact", "map"]))
@some
def test_probabilities_are_probabilities_everywhere(name, d, inference):
    """In [0, 1], of sum 1, and finite in log space, at the rows, at gaps, and a million standard deviations away."""
    if not d.weight.any():
        return
    # Of alpha = 1 a class without rows has the mode 0.
    classifier = learn(name, d, d.x, inference=inference, class_concentration=2.0)
    far = d.offset + d.scale * 1e6 * d.rng.choice([-1, 1], d.z.shape)
    for x in (d.x, np.where(d.gaps, np.nan, d.x), far, np.full((1, d.z.shape[1]), np.nan)):
        log_probability = classifier.predict_log_proba(x)
        probability = classifier.predict_proba(x)
        assert np.isfinite(log_probability).all()
        assert ((probability >= 0) & (probability <= 1 + 1e-12)).all()
        np.testing.assert_allclose(probability.sum(1), 1, rtol=0, atol=1e-12)
        assert np.isfinite(classifier.score_samples(x)).all()
    with_nothing = classifier.predict_proba(np.full((1, d.z.shape[1]), np.nan))
    np.testing.assert_allclose(with_nothing[0], classifier.posterior_.model.classes.mean
                               if inference == "exact" else classifier.posterior_.params["classes.probability"],
                               rtol=1e-12)  # fmt: skip


@given(d=rows())
@some
def test_mixed_naive_bayes_is_the_product_of_its_leaves(d):
    """Probabilities in [0, 1] of sum 1, statistics that add, and the joint as the sum of every leaf's own."""
    made = {kind: leaf_and_rows(kind, d) for kind in KINDS}
    model = NaiveBayes(DirichletCategorical(0.8, d.classes), {kind: leaf for kind, (leaf, _) in made.items()})
    x = {kind: values for kind, (_, values) in made.items()}
    half = d.rng.random(len(d.t)) < 0.5
    pieces = [model.statistics({k: v[i] for k, v in x.items()}, d.t[i], d.weight[i]) for i in (half, ~half)]
    whole = model.statistics(x, d.t, d.weight)
    merged = pieces[0] + pieces[1]
    for kind in KINDS:
        assert_same(merged.leaves[kind], whole.leaves[kind], d)
    posterior = model.update(whole)
    joint = posterior.log_predictive(x)
    alone = [posterior.leaves[kind].log_predictive(x[kind]) for kind in KINDS]
    np.testing.assert_allclose(joint, np.log(posterior.classes.mean) + sum(alone), rtol=1e-12)
    probability = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(probability.sum(1), 1, rtol=0, atol=1e-12)
