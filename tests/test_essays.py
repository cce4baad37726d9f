"""The essays, pictures that move, compute what the Python classes do."""

import json

import numpy as np
import pandas as pd
import pytest
from py_mini_racer import MiniRacer
from scipy import stats

import bayesgen as bg
from bayesgen.models import BetaBernoulli, NormalInverseWishart, StudentT
from bayesgen.plot.regions import agreement
from docs import essays


@pytest.fixture(scope="module")
def ask():
    """Ask for an expression of JavaScript, after statements, with values by name."""
    with MiniRacer() as engine:
        engine.eval(essays.script())

        def ask(expression, statements="", **values):
            given = "".join(f"const {name} = {json.dumps(value)};" for name, value in values.items())
            return json.loads(engine.eval(f"(() => {{{given}{statements} return JSON.stringify({expression})}})()"))

        yield ask


@pytest.mark.parametrize("path", essays.PAGES, ids=lambda path: path.stem)
def test_a_page_is_one_small_file_with_what_it_shares_as_it_is_now(path):
    page = path.read_text(encoding="utf-8")
    assert page == essays.written(page), "write it again: python docs/essays.py"
    assert len(page.encode()) <= 300_000
    assert "src=" not in page.split("<script>")[0]  # it loads nothing
    assert page.count("<li>") >= 3


# -- the coin --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [(2, 2), (1, 1), (0.5, 0.5), (1, 3), (7.3, 0.2)])
@pytest.mark.parametrize("tosses", [(2, 0), (55, 45), (0, 0), (0, 1), (3, 100)])
def test_the_three_answers_are_those_of_the_class(ask, prior, tosses):
    found = ask("coin.answers({a, b}, heads, tails)", a=prior[0], b=prior[1], heads=tosses[0], tails=tosses[1])
    rows = np.repeat([1, 0], tosses)
    for name, way in {"ml": "ml", "map": "map", "predictive": "exact"}.items():
        try:
            expected = np.exp(bg.fit(BetaBernoulli(*prior), rows, way).log_predictive([1]))[0]
        except ValueError:
            assert found[name] is None
        else:
            if found[name] is None:  # a flat density is highest everywhere, and Python takes its middle
                assert (name, prior, tosses) == ("map", (1, 1), (0, 0))
            else:
                assert found[name][0] / found[name][1] == pytest.approx(expected, abs=1e-10)


def test_the_table_of_the_slide(ask):
    few, many = (ask("coin.answers({a: 2, b: 2}, ...tosses)", tosses=tosses) for tosses in ((2, 0), (55, 45)))
    assert few == {"ml": [2, 2], "map": [3, 4], "predictive": [4, 6]}
    assert many == {"ml": [55, 100], "map": [56, 102], "predictive": [57, 104]}


@pytest.mark.parametrize("beta", [(2, 2), (4, 2), (0.1, 120), (0.5, 1.5), (57, 47), (120, 120), (20.1, 0.1)])
def test_density_and_interval_are_those_of_scipy(ask, beta):
    theta = [1e-4, 0.02, 0.3, 0.55, 0.999]
    density = ask("theta.map((t) => coin.logDensity({a, b}, t))", a=beta[0], b=beta[1], theta=theta)
    assert density == pytest.approx(stats.beta.logpdf(theta, *beta), abs=1e-10, rel=1e-12)
    ends = ask("[0.05, 0.5, 0.95].map((share) => coin.quantile({a, b}, share))", a=beta[0], b=beta[1])
    below = ask("theta.map((t) => coin.distribution({a, b}, t))", a=beta[0], b=beta[1], theta=theta)
    assert below == pytest.approx(stats.beta.cdf(theta, *beta), abs=1e-12)
    assert ends == pytest.approx(stats.beta.ppf([0.05, 0.5, 0.95], *beta), abs=1e-10)


@pytest.mark.parametrize("beta", [(4, 2), (0.5, 1.5), (57, 47), (0.1, 120)])
def test_draws_that_fall_are_of_the_posterior(ask, beta):
    values = "random = generator(2), drawn = Array.from({length: 4000}, () => coin.draw({a, b}, random))"
    drawn = ask("drawn", f"const {values};", a=beta[0], b=beta[1])
    assert stats.kstest(drawn, stats.beta(*beta).cdf).pvalue > 1e-4


# -- two densities, one boundary -------------------------------------------------------------------------------------

STRUCTURES = [(shape, shared) for shape in ("full", "diagonal", "isotropic") for shared in (False, True)]
START = """const classes = rows.map(gaussian.moments);
const prior = gaussian.weak(classes, shape);
const posterior = gaussian.posterior(prior, classes, shared);"""


@pytest.fixture(scope="module", params=[(12, 7), (20, 9, 5)], ids=["two", "three"])
def clouds(request):
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(len(request.param)), request.param)
    X = rng.normal(0, 1, (len(y), 2)) @ [[1.0, 0.4], [0.0, 0.6]] * (1 + 0.4 * y[:, None]) + np.c_[1.5 * y, -0.8 * y]
    return X, y, [X[y == k].tolist() for k in np.unique(y)]


@pytest.mark.parametrize(("shape", "shared"), STRUCTURES)
def test_densities_and_evidence_are_those_of_the_classifier(ask, clouds, shape, shared):
    X, y, rows = clouds
    points = [[0.0, 0.0], [1.3, -2.0], [8.0, 5.0], [-30.0, 1.0]]
    found = ask(
        """{ bayes: all(gaussian.logPredictive(posterior)), ml: all(gaussian.logDensity(ml)),
             evidence: gaussian.logEvidence(prior, classes, shared) }""",
        START + """const ml = gaussian.ml(classes, { shape, shared });
            const all = (scores) => points.map(([x, y]) => scores.map((score) => score(x, y)));""",
        rows=rows, shape=shape, shared=shared, points=points,
    )  # fmt: skip
    for name, way in {"bayes": "exact", "ml": "ml"}.items():
        classifier = bg.GaussianDiscriminantClassifier(shape, shared=shared, inference=way).fit(X, y)
        expected = classifier.predict_joint_log_proba(points)
        np.testing.assert_allclose(found[name], expected, rtol=1e-10, atol=1e-10)
    exact = bg.GaussianDiscriminantClassifier(shape, shared=shared).fit(X, y)
    assert found["evidence"] == pytest.approx(exact.log_evidence_, abs=1e-10, rel=1e-12)


@pytest.mark.parametrize(("shape", "shared"), STRUCTURES)
def test_draws_have_the_posterior_of_the_classifier(ask, clouds, shape, shared):
    X, y, rows = clouds
    count = 4000
    drawn = ask(
        "draws.map((draw) => draw.map((c) => [...c.mean, ...c.covariance, c.share]))",
        START + "const draws = gaussian.draws(posterior, shared, count, generator(5));",
        rows=rows, shape=shape, shared=shared, count=count,
    )  # fmt: skip
    drawn = np.array(drawn)  # (draws, K, 6)
    posterior = bg.GaussianDiscriminantClassifier(shape, shared=shared).fit(X, y).posterior_
    theirs = posterior.draws(0, (count,))
    where = {"gaussian.mean": drawn[..., :2], "classes.probability": drawn[..., 5]}
    spread = drawn[..., [[2, 3], [3, 4]]]
    if shape == "full":
        where["gaussian.covariance"] = spread[:, 0] if shared else spread
    else:
        variance = drawn[..., [2, 4]] if shape == "diagonal" else drawn[..., 2]
        where["gaussian.variance"] = variance[:, 0] if shared else variance
    for site, ours in where.items():
        for change in (np.cbrt, np.square if site == "gaussian.mean" else np.abs):  # within the error of both
            a, b = change(ours), change(theirs[site])
            error = np.sqrt((a.var(0) + b.var(0)) / count)
            assert (np.abs(a.mean(0) - b.mean(0)) < 5 * error + 1e-12).all(), site


def test_students_t_is_the_mode_of_the_leaf_and_lets_an_outlier_go(ask, clouds):
    *_, rows = clouds
    rows = [[*rows[0], [40.0, -35.0]], *rows[1:]]
    names = "({prior: {...prior, scale: prior.parts[0].scale, dof: prior.parts[0].dof}, known, at: score(1.5, -2)})"
    found = ask(
        names,
        """const prior = gaussian.weak(rows.map(gaussian.moments), "full"), known = gaussian.student(rows, prior);
        const score = (x, y) => gaussian.logStudent(known).map((one) => one(x, y));""",
        rows=rows,
    )
    prior, (xx, xy, yy) = found["prior"], found["prior"]["scale"]
    gaussian = NormalInverseWishart(prior["mean"], prior["kappa"], prior["dof"], [[xx, xy], [xy, yy]])
    count = sum(map(len, rows))
    for those, known, at in zip(rows, found["known"], found["at"], strict=True):
        mode = bg.fit(StudentT(gaussian, dof=4.0), those, "map").params
        np.testing.assert_allclose(known["mean"], mode["mean"], atol=1e-6)
        covariance = np.asarray(mode["covariance"])[[0, 0, 1], [0, 1, 1]]
        np.testing.assert_allclose(known["covariance"], covariance, rtol=1e-5)
        (a, b, c), share = known["covariance"], len(those) / count
        density = stats.multivariate_t(known["mean"], [[a, b], [b, c]], df=4).logpdf([1.5, -2.0])
        assert at == pytest.approx(np.log(share) + density, abs=1e-10)
    assert np.abs(np.array(found["known"][0]["mean"]) - np.mean(rows[0][:-1], axis=0)).max() < 0.5


def test_the_band_is_that_of_the_picture_within_the_error_of_its_draws(ask, clouds):
    X, y, rows = clouds
    points = np.random.default_rng(0).normal(0.8, 2.0, (60, 2))
    found = ask(
        "points.map(([x, y]) => gaussian.agreement(scorers, x, y))",
        START + "const scorers = gaussian.draws(posterior, shared, count, generator(1)).map(gaussian.logDensity);",
        rows=rows, shape="full", shared=False, points=points.tolist(), count=2000,
    )  # fmt: skip
    classifier = bg.GaussianDiscriminantClassifier().fit(X, y)
    expected = agreement(classifier, points, 2000)
    assert expected.min() < 0.7
    error = np.sqrt(2 * expected * (1 - expected) / 2000) + 1 / 2000
    assert (np.abs(np.array(found) - expected) < 5 * error).all()


# -- a spam filter that explains itself ------------------------------------------------------------------------------

COUNTS = {"mails": [60, 40], "words": {"meeting": [27, 1], "lunch": [21, 0], "winner": [0, 14], "unicorn": [0, 0]}}


@pytest.fixture(scope="module")
def sorted_mails():
    """A table whose columns have these counts, mail by mail."""
    ham, spam = COUNTS["mails"]
    columns = {
        word: np.r_[np.arange(ham) < in_ham, np.arange(spam) < in_spam].astype(float)
        for word, (in_ham, in_spam) in COUNTS["words"].items()
    }
    return pd.DataFrame(columns), np.repeat(["ham", "spam"], [ham, spam])


@pytest.mark.parametrize("count", [0.1, 1.0, 4.5])
@pytest.mark.parametrize("prior", [0.4, 0.03])
@pytest.mark.parametrize("mail", [(1, 0, 1, 1), (0, 0, 0, 0), (None, 1, 1, None), (None,) * 4], ids=str)
def test_a_mail_is_explained_as_by_the_classifier(ask, sorted_mails, count, prior, mail):
    X, y = sorted_mails
    classifier = bg.NaiveBayesClassifier(dict.fromkeys(X, BetaBernoulli(count, count))).fit(X, y)
    row = pd.DataFrame([mail], columns=X.columns, dtype=float)
    given = {word: None if one is None else bool(one) for word, one in zip(X, mail, strict=True)}
    found = ask(
        "{...found, p: spam.probability(found.total)}",
        "const found = spam.explain(counts, mail, a, prior);",
        counts=COUNTS, mail=given, a=count, prior=prior,
    )  # fmt: skip
    expected = classifier.predict_proba(row, priors=[1 - prior, prior])[0]
    assert found["p"] == pytest.approx(expected[1], rel=1e-12)
    for word in X:
        alone = row.assign(**{other: np.nan for other in X if other != word})
        p = classifier.predict_proba(alone, priors=[0.5, 0.5])[0]
        assert found["added"].get(word, 0.0) == pytest.approx(np.log(p[1] / p[0]), abs=1e-12)


@pytest.mark.filterwarnings("ignore:columns .'unicorn'. are constant:UserWarning")
def test_maximum_likelihood_of_words_and_its_answers_that_are_none(ask, sorted_mails):
    X, y = sorted_mails
    ml = bg.NaiveBayesClassifier("bernoulli", inference="ml").fit(X, y)
    theta = ml.posterior_.params["bernoulli.probability"]
    found = [ask("spam.likelihood(counts, word, true, 0)", counts=COUNTS, word=word) for word in X]
    assert np.transpose(found[:-1]) == pytest.approx(theta)
    assert found[-1] == [0, 0]  # no mail has it, so the classifier leaves it out
    totals = [
        ask("String(spam.explain(counts, mail, 0, 0.4).total)", counts=COUNTS, mail=mail)
        for mail in ({"winner": True}, {"lunch": True}, {"winner": True, "lunch": True}, {"unicorn": True})
    ]
    assert totals == ["Infinity", "-Infinity", "NaN", "NaN"]


@pytest.mark.parametrize("cost", [1, 10, 37.5])
def test_the_threshold_is_that_of_the_loss(ask, cost):
    assert ask("spam.threshold(cost)", cost=cost) == pytest.approx(bg.decision.threshold([[0, cost], [1, 0]]))
