"""Rows far from the rows of a fit, under the averaged classifier: densities in 40 digits, at every size of float64."""

import functools

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, logsumexp, softmax

from bayesgen import AveragedClassifier, inspection
from bayesgen.averaging.ensembles import ForestMember
from bayesgen.averaging.softmax import STRENGTHS, SoftmaxMember

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

MP = mpmath.mp.clone()
MP.dps = 40
SIZES = [1e0, 1e60, 1e99, 1e101, 1e149, 1e200, 1.7e308]


def bent(warp, row):
    """The bent columns of a row, NaN where missing."""
    result = []
    for x, location, scale, power in zip(row, warp.location, warp.scale, warp.power, strict=True):
        z = (MP.mpf(float(x)) - MP.mpf(location)) / MP.mpf(scale)
        p = MP.mpf(float(2 - power if z < 0 else power))
        size = MP.log1p(abs(z)) if p == 0 else MP.expm1(p * MP.log1p(abs(z))) / p
        result.append(MP.sign(z) * size)
    return result


@functools.cache
def level_of(dof, width, kappa):
    """Log of the constant of a t of scale matrix (kappa + 1)/(kappa dof) A, but for A."""
    return gammaln((dof + width) / 2) - gammaln(dof / 2) - width / 2 * np.log(np.pi * (kappa + 1) / kappa)


def log_student(z, scale, kappa, dof):
    """Log density of a t at distance z, which may be any size, from its location."""
    precision = np.linalg.inv(scale)
    square = MP.fsum(MP.mpf(precision[i, j]) * z[i] * z[j] for i in range(len(z)) for j in range(len(z)))
    inside = float(MP.log1p(square * kappa / (kappa + 1)))
    return level_of(dof, len(z), kappa) - np.linalg.slogdet(scale)[1] / 2 - (dof + len(z)) / 2 * inside


def of_numbers(view, member, row, y):
    """Log p(x | k) of a row under a member, in the units of the bent columns, which are ``y``."""
    model = member.posterior(view.statistics, view.reference)
    mean = (
        model.mean
    )  # of the columns: scale matrices and degrees of freedom of a normal-inverse-Wishart, D = 1 if diagonal
    diagonal = "diagonal" in member.structure
    nu_of, scale_of = (2 * model.alpha, 2 * model.beta) if diagonal else (model.nu, model.scale)
    kappas, nu_of = (np.broadcast_to(v.T, (*mean.shape[::-1],)).T if diagonal else v for v in (model.kappa, nu_of))
    seen, owner = np.flatnonzero(~np.isnan(row)), view.view.owner
    groups = np.zeros(len(owner))
    for g in range(len(owner)):
        h = g if len(scale_of) > 1 else 0
        scale, z = scale_of[h], {j: y[j] - MP.mpf(mean[g, j]) for j in seen}
        if diagonal:
            groups[g] = sum(log_student([z[j]], scale[[[j]]], kappas[g, j], nu_of[h, j]) for j in seen)
        elif len(seen):
            groups[g] = log_student(list(z.values()), scale[np.ix_(seen, seen)], kappas[g], nu_of[h] - len(row) + 1)
    share, own = view.statistics.n + 1, owner == np.arange(owner[-1] + 1)[:, None]
    return logsumexp(np.where(own, groups, -np.inf), axis=1, b=share) - np.log(own @ share)


def of_softmax(members, strength, row, codes):
    """Log p(k | x) less the log class frequencies; 0 where all is missing."""
    if np.isnan(row).all() and not codes:
        return [MP.mpf(0)] * len(members.log_prior)
    y = bent(members.warp, row)
    hot = [float(a == b) for a, n in zip(codes, members.levels, strict=True) for b in range(n)]
    z = [
        MP.mpf(0) if np.isnan(x) else (v - MP.mpf(m)) / MP.mpf(s)
        for x, v, m, s in zip(row, y, members.centre, members.scale, strict=True)
    ]
    columns = [MP.mpf(1), *z, *hot]
    scores = [
        MP.fsum(MP.mpf(b) * v for b, v in zip(own, columns, strict=True))
        for own in members.coefficients[STRENGTHS.index(strength)]
    ]
    return [s - MP.mpf(p) for s, p in zip(scores, members.log_prior, strict=True)]


def exact(classifier, row, codes):
    """P(k | x) and log p(x, k) of a row of numbers."""
    average = classifier.average_
    x = np.array(row, float)[None]
    log_prior, views = average.log_class_prior, average.modelling("numbers")
    numbers = {}
    for view, used in used_views(average):
        y = bent(view.view.warp, x[0])
        numbers |= {m: of_numbers(view, m, x[0], y) for m in used}
    softmaxes = next((part for part in average.parts if isinstance(part.members[0], SoftmaxMember)), None)
    probability, joint = np.zeros(len(log_prior)), np.full(len(log_prior), -np.inf)
    members = zip(average.members, average.weights, average.density_weights, average.exponents, strict=True)
    for member, w, v, tau in members:
        if isinstance(member, SoftmaxMember) and w:
            scores = [
                MP.mpf(tau) * f + p
                for f, p in zip(of_softmax(softmaxes, member.strength, x[0], codes), log_prior, strict=True)
            ]
            probability += (
                w
                * np.array([float(MP.exp(f - max(scores))) for f in scores])
                / float(MP.fsum(MP.exp(f - max(scores)) for f in scores))
            )
        elif isinstance(member, ForestMember) and w:  # beyond its rows it says what it says at their edge
            part = next(own for own in average.parts if member in own.members)
            density = part.log_density(x, np.array([codes], int).reshape(1, -1), [0])[0, 0]
            probability += w * (softmax(tau * density + log_prior) + part.least * np.exp(log_prior)) / (1 + part.least)
        elif w or v:
            density = numbers[member.factors[0]] if "numbers" in member.blocks else np.zeros(len(log_prior))
            probability += w * softmax(tau * density + log_prior)
            if v:
                joint = np.logaddexp(joint, np.log(v) + density + log_prior)
    slope = MP.mpf(0)
    for j in np.flatnonzero(~np.isnan(x[0])):
        warp = views[0].view.warp
        z = (MP.mpf(x[0, j]) - MP.mpf(warp.location[j])) / MP.mpf(warp.scale[j])
        power = MP.mpf(float(2 - warp.power[j] if z < 0 else warp.power[j]))
        slope += (power - 1) * MP.log1p(abs(z)) - MP.log(MP.mpf(warp.scale[j]))
    probability = np.exp(log_prior) * (probability / np.exp(log_prior)) ** average.sharpening
    return probability / probability.sum(), joint + float(slope)


def used_views(average):
    """The views, each with the members that have some weight."""
    both = zip(average.members, average.weights, average.density_weights, strict=True)
    used = {factor for member, w, v in both if w or v for factor in member.factors}
    return [(view, [m for m in view.members if m in used]) for view in average.modelling("numbers")]


def table(columns, units=1.0, seed=0, rows=60):
    """Skewed, correlated columns of three classes of 36, 16 and 8 rows."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [36, 16, 8])[:rows]
    hidden = rng.normal(size=(len(y), 1)) + y[:, None]
    X = hidden + 0.7 * rng.normal(size=(len(y), columns))
    X[:, ::2] = np.exp(X[:, ::2])
    X[:, 1::4] = -np.exp(-X[:, 1::4])
    return X * units, y


FEW = ["gaussian", "category", "softmax"]
TABLES = {
    "one column": (table(1), {"members": FEW}),
    "in components": (table(2), {}),
    "columns as they are": (table(3, seed=1), {"bend": False, "members": FEW}),
    "tiny and huge units": (table(3, units=[1e-80, 1e140, 1.0]), {"members": FEW}),
}


@pytest.mark.parametrize("case", TABLES.values(), ids=TABLES)
def test_rows_of_any_size_have_their_limit(case):
    (X, y), options = case
    classifier = AveragedClassifier(**options).fit(X, y)
    rng, width = np.random.default_rng(1), X.shape[1]
    unit = np.median(np.abs(X), 0)
    rows = []
    for place, size in enumerate(SIZES):
        row = X[rng.integers(len(X))].copy()
        row[rng.integers(width)] = (-1) ** place * size
        rows.append(row)
        with np.errstate(over="ignore"):  # each column so many of its own units away, to the end of float64
            far = np.clip(unit * rng.normal(size=width) * size, -1.7e308, 1.7e308)
        rows += [far, np.where(np.arange(width) == rng.integers(width), np.nan, far)]
    wanted = [exact(classifier, row, []) for row in rows]
    np.testing.assert_allclose(classifier.predict_proba(rows), [p for p, _ in wanted], rtol=1e-6, atol=1e-9)
    joint = classifier.predict_joint_log_proba(rows)
    np.testing.assert_allclose(joint, [j for _, j in wanted], rtol=1e-9, atol=1e-7)


def test_far_rows_with_categories_and_gaps_are_finite():
    X, y = table(3)
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=np.array(["p", "q"])[(y > 0).astype(int)])
    classifier = AveragedClassifier(members=["gaussian", "category", "softmax"]).fit(frame, y)
    far = frame.iloc[::6].assign(b=-(10.0 ** np.arange(60, 160, 10)))
    far.iloc[::2, 2] = np.nan
    probability, joint = classifier.predict_proba(far), classifier.predict_joint_log_proba(far)
    assert np.isfinite(probability).all() and np.isfinite(joint).all()
    assert (inspection.typicality(classifier, far, 200).overall < 0.05).all()
    assert np.isfinite(classifier.sample(20)[0][["a", "b", "c"]].to_numpy()).all()
    near = frame.iloc[:5]
    together = classifier.predict_proba(pd.concat([near, far]))
    np.testing.assert_allclose(together[:5], classifier.predict_proba(near), rtol=1e-12)


@pytest.mark.parametrize(
    "question", ["explain", "predict_proba_interval", inspection.impute, inspection.next_measurement]
)
def test_questions_without_a_limit_name_row_and_column(question):
    X, y = table(2)
    classifier = AveragedClassifier(members=["gaussian", "category", "softmax"], bend=False).fit(X, y)
    with pytest.raises(ValueError, match=r"column 'x1': value -1e\+149 in row 1 is too far from the rows of the fit"):
        ask = functools.partial(question, classifier) if callable(question) else getattr(classifier, question)
        ask([[1.0, -1.0], [np.nan, -1e149]])


def test_what_columns_add_is_finite_where_a_probability_is_nothing():
    """An unbalanced class loses by its degrees of freedom: 8 rows against 36, at 1e90."""
    X, y = table(2)
    classifier = AveragedClassifier(members=["gaussian", "category"], weights="evidence").fit(X, y)
    row = [[1e90, -1e90]]
    assert np.isfinite(np.asarray(classifier.explain(row))).all()
