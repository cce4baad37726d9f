"""Sequences: a Markov chain against counts by hand, enumeration, the models that it contains, and NUTS."""

import itertools
from collections import Counter

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
from laws import compiled, near, x64
from numpyro.contrib.funsor import config_enumerate, enum
from numpyro.contrib.funsor import log_density as summed_density
from numpyro.infer.util import log_density
from refusals import refuses
from scipy import stats
from scipy.special import betaln, gammaln, logsumexp

import bayesgen as bg
from bayesgen.inference.whitening import whitened
from bayesgen.models import BetaBernoulli, DirichletCategorical, MarkovChain, NaiveBayes, NormalInverseGamma

WORDS = ["abca", "cab", "b", "aabbcc", "cccab", "ba"]


def polya(alpha, counts):
    """Log of Γ(A)/Γ(A + N) ∏ Γ(alpha + n)/Γ(alpha)."""
    alpha, counts = np.asarray(alpha, float), np.asarray(counts, float)
    rising = gammaln(alpha + counts) - gammaln(alpha)
    return rising.sum() + gammaln(alpha.sum()) - gammaln(alpha.sum() + counts.sum())


def evidence(words, order, alpha=1.5, symbols="abc"):
    """Log evidence by counting pairs of context and symbol in the text itself."""
    counts = Counter()
    for word in words:
        for i, symbol in enumerate(word):
            counts["^" * (i < order) + word[max(i - order, 0) : i], symbol] += 1
    contexts = {context for context, _ in counts}
    return sum(polya([alpha] * len(symbols), [counts[c, s] for s in symbols]) for c in contexts)


def completions(word, symbols="abc"):
    holes = [i for i, s in enumerate(word) if s == "?"]
    for filling in itertools.product(symbols, repeat=len(holes)):
        letters = list(word)
        for i, s in zip(holes, filling, strict=True):
            letters[i] = s
        yield "".join(letters)


def probability(chain, p, word):
    """The product of transition probabilities, symbol by symbol."""
    result = 1.0
    for i, symbol in enumerate(word):
        context = "^" * (i < chain.order) + word[max(i - chain.order, 0) : i]
        result *= p[chain.contexts.index(context), chain.categories.index(symbol)]
    return result


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_evidence_and_predictive_count_the_text(order):
    chain = MarkovChain("abc", order, 1.5)
    statistics = chain.statistics(WORDS)
    np.testing.assert_allclose(chain.log_evidence(statistics), evidence(WORDS, order), rtol=1e-12)
    found = chain.update(statistics).log_predictive(["acab", "bbbbb"])
    expected = [evidence([*WORDS, new], order) - evidence(WORDS, order) for new in ("acab", "bbbbb")]
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    every = ["".join(s) for s in itertools.product("abc", repeat=4)]  # given the length they sum to 1
    np.testing.assert_allclose(logsumexp(chain.update(statistics).log_predictive(every)), 0, atol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_gaps_are_summed_out(order):
    chain = MarkovChain("abc", order, 1.5, gap="?")
    gaps = ["a?ca", "??b", "ab?", "?", "b?a?cb?", "bc"]
    p = chain.sample_parameters(np.random.default_rng(order))["probability"]
    each = [np.log(sum(probability(chain, p, own) for own in completions(word))) for word in gaps]
    np.testing.assert_allclose(chain.log_likelihood_rows({"probability": p[None]}, chain.check(gaps))[0], each)
    statistics = chain.statistics(gaps, weight=[1, 2, 1, 1, 0.5, 1])
    np.testing.assert_allclose(
        chain.log_likelihood({"probability": p}, statistics), np.dot([1, 2, 1, 1, 0.5, 1], each), rtol=1e-12
    )
    both = [[*first, *second] for first in completions("a?ca") for second in completions("b?a")]
    both = [("".join(w[:4]), "".join(w[4:])) for w in both]
    expected = logsumexp([evidence([*WORDS, *own], order) for own in both])
    np.testing.assert_allclose(chain.log_evidence(chain.statistics([*WORDS, "a?ca", "b?a"])), expected, rtol=1e-12)
    posterior = chain.update(chain.statistics(WORDS))
    expected = logsumexp([evidence([*WORDS, own], order) for own in completions("?b??a?")]) - evidence(WORDS, order)
    np.testing.assert_allclose(posterior.log_predictive(["ab", "?b??a?"])[1], expected, rtol=1e-11)


def test_order_0_is_categories_and_coins():
    rows = ["aab", "b", "cab"]
    alpha, codes = [1.5, 0.7, 2.0], [0, 0, 1, 1, 2, 0, 1]
    chain, die = MarkovChain("abc", 0, alpha), DirichletCategorical(alpha)
    chain_after, die_after = chain.update(chain.statistics(rows)), die.update(die.statistics(codes))
    np.testing.assert_array_equal(chain_after.alpha[0], die_after.alpha)
    np.testing.assert_allclose(
        chain.log_evidence(chain.statistics(rows)), die.log_evidence(die.statistics(codes)), rtol=1e-14
    )
    np.testing.assert_allclose(chain_after.log_predictive(["a", "b", "c"]), die_after.log_predictive([0, 1, 2]))
    coin = BetaBernoulli(2.0, 0.7)
    tosses, chain = [1, 0, 0, 1, 1], MarkovChain("01", 0, [0.7, 2.0])
    coin_after, chain_after = coin.update(coin.statistics(tosses)), chain.update(chain.statistics(["100", "11"]))
    np.testing.assert_allclose(chain_after.mean[0, 1], coin_after.mean, rtol=1e-15)
    np.testing.assert_allclose(chain.log_evidence(chain.statistics(["100", "11"])), betaln(5, 2.7) - betaln(2, 0.7))
    np.testing.assert_allclose(chain_after.log_predictive(["0", "1"]), coin_after.log_predictive([0, 1]), rtol=1e-14)


@pytest.mark.slow
def test_nuts_finds_the_mixture_of_a_posterior_with_gaps():
    """The exact posterior mean over the completions of the rows, weighted by their evidence."""
    chain, rows = MarkovChain("ab", 1, [[2.0, 1.0], [1.5, 1.0], [1.0, 3.0]], gap="?"), ["a?b?", "b?ab", "aab?b", "?bb"]
    sampled = bg.fit(chain, rows, bg.NUTS(num_warmup=300, num_samples=1000, num_chains=2), seed=3)
    ways = [chain.statistics(list(own)) for own in itertools.product(*(completions(row, "ab") for row in rows))]
    logs = np.array([chain.log_evidence(own) for own in ways])
    weight = np.exp(logs - logsumexp(logs))
    mean = sum(w * chain.update(own).mean for w, own in zip(weight, ways, strict=True))
    near(sampled.samples["probability"], mean, what="posterior mean under gaps")


def test_map_and_ml_maximise_over_gaps():
    """No step from them gains; expectation-maximisation is checked by the likelihood that enumeration gives above."""
    rng = np.random.default_rng(0)
    chain = MarkovChain("abc", 2, 2.0, gap="?")
    rows = ["".join(rng.choice(list("abc?"), 9, p=[0.4, 0.3, 0.2, 0.1])) for _ in range(60)]
    statistics = chain.statistics(rows)
    for way, weight in (("ml", 0.0), ("map", 1.0)):
        best = bg.fit(chain, statistics, way).params["probability"]

        def height(p, weight=weight):
            return chain.log_likelihood({"probability": p}, statistics) + weight * (np.log(p) * (chain.alpha - 1)).sum()

        for size in (0.3, 1e-2, 1e-4):
            for _ in range(20):
                p = best * np.exp(size * rng.standard_normal(best.shape))
                assert height(p / p.sum(-1, keepdims=True)) < height(best) + 1e-9


def test_unknown_classes_are_enumerated():
    leaf = MarkovChain("ab", 1, 2.0, gap="?")
    model = NaiveBayes(DirichletCategorical(1.0, 2), {"word": leaf})
    x = {"word": leaf.check(["ab", "b?ba", "a", "bbb?b"])}
    rng = np.random.default_rng(0)
    params = model.sample_parameters(rng)
    with x64():
        summed = enum(config_enumerate(model), -4)
        found = compiled(lambda v: summed_density(summed, (x,), {}, v)[0], params)(params)
        prior = compiled(lambda v: log_density(model.latents, (), {}, v)[0], params)(params)
    one = {site: value[None] for site, value in params.items()}
    expected = logsumexp(model.log_likelihood_rows(one, x)[0], axis=0).sum()
    np.testing.assert_allclose(float(found - prior), expected, rtol=1e-10)


def _table(count=120):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, count)
    chains = [rng.dirichlet(np.ones(4) * 0.5, 5) for _ in range(2)]
    words = [
        MarkovChain("ACGT", length=int(n)).draw({"probability": chains[k]}, rng)
        for k, n in zip(y, rng.integers(4, 20, count), strict=True)
    ]
    words = ["".join("ACGT"[int(v)] for v in word) for word in words]
    return pd.DataFrame({"dna": words, "size": rng.normal(size=count) + y}), np.array(["no", "yes"])[y]


def test_a_column_of_sequences(tmp_path):
    X, y = _table()
    leaf = MarkovChain("ACGT", gap="N")
    classifier = bg.NaiveBayesClassifier({"dna": leaf}).fit(X, y)
    probabilities = classifier.predict_proba(X)
    lists = pl.DataFrame({"dna": [list(word) for word in X["dna"]], "size": X["size"].to_numpy()})
    spaced = X.assign(dna=[" ".join(word) for word in X["dna"]])
    for rows, own in ((lists, leaf), (spaced, MarkovChain("ACGT", separator=" "))):
        again = bg.NaiveBayesClassifier({"dna": own}).fit(rows, y)
        np.testing.assert_array_equal(again.predict_proba(rows), probabilities)
    halves = bg.NaiveBayesClassifier({"dna": leaf}).partial_fit(X[:50], y[:50], classes=["no", "yes"])
    np.testing.assert_allclose(halves.partial_fit(X[50:], y[50:]).predict_proba(X), probabilities, rtol=1e-10)
    classifier.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(bg.load(tmp_path / "model.safetensors").predict_proba(X), probabilities)
    draws = classifier.to_arviz()["posterior"]["dna.probability"]
    assert draws.coords["dna.context"].values.tolist() == ["^", "A", "C", "G", "T"]
    assert draws.coords["dna.category"].values.tolist() == list("ACGT")
    evidence = classifier.explain(lists, row=3)
    odds = np.diff(np.log(probabilities[3, :: 1 if evidence.label == "yes" else -1]))[0]
    assert evidence.values["dna"] == " ".join(X["dna"][3])
    np.testing.assert_allclose(evidence.prior + sum(evidence.terms.values()), odds)
    rows, classes = classifier.sample(5)
    assert len(rows) == len(classes) == 5 and set(rows["dna"].iloc[0]) <= set("ACGT")
    with pytest.warns(UserWarning, match="'dna': \\['X'\\] in 1 row"):
        unseen = classifier.predict_proba(pd.DataFrame({"dna": ["ACXG", None], "size": [0.0, 0.0]}))
    np.testing.assert_array_equal(
        unseen[0], classifier.predict_proba(pd.DataFrame({"dna": ["ACNG"], "size": [0.0]}))[0]
    )


def test_classes_are_learned_where_labels_and_symbols_lack():
    X, y = _table()
    some = np.where(np.arange(len(y)) < 60, y, None)
    leaf = MarkovChain("ACGT", gap="N", alpha=1.5)
    found = bg.LatentClassClassifier(features={"dna": leaf, "size": "drop"}).fit(X, some)
    assert (found.predict(X[60:]) == y[60:]).mean() > 0.9
    X.loc[:20, "dna"] = [word[:1] + "N" + word[2:] for word in X["dna"][:21]]
    with pytest.raises(ValueError, match=r"'dna': rows lack symbols .*'map', 'ml' or 'nuts'"):
        bg.NaiveBayesClassifier({"dna": leaf}).fit(X, y)
    with pytest.raises(ValueError, match=r"'dna'.*rows without a label have gaps"):
        bg.LatentClassClassifier(features={"dna": leaf}).fit(X, some[::-1])
    assert (bg.NaiveBayesClassifier({"dna": leaf}, inference="map").fit(X, y).predict(X) == y).mean() > 0.9


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["ab", ""], "row 1 is an empty sequence"),
        (["ab", "ax"], "row 1 holds the symbol 'x'.*\\['a', 'b'\\].*gap="),
        (["ab", 3.0], "row 1 is 3.0, a float"),
        (["ab", [["a"]]], "row 1 holds lists in place of symbols"),
        ("ab", "takes many sequences"),
        ([[0.0, 2.0]], "row 0 has 2 at place 1"),
        ([[0.0, 1.0], [0.5, 1.0]], "row 1 has 0.5 at place 0"),
        ([[0.0, -1.0, 1.0]], "row 0 goes on behind its end"),
        ([[-1.0, -1.0]], "row 0 is an empty sequence"),
    ],
)
def test_rows_are_refused_by_name(rows, message):
    rows = np.array(rows) if isinstance(rows[0], list) else rows
    refuses(lambda: MarkovChain("ab").statistics(rows), message, (ValueError, TypeError))


def test_what_a_chain_does_not_do_is_said():
    chain = MarkovChain("abc", gap="?")
    refuses(lambda: chain.log_predictive(["??????????a"]), "3\\^10 ways")
    X, y = _table(40)
    with pytest.raises(TypeError, match=r"'dna'.*use NaiveBayesClassifier"):
        bg.AveragedClassifier(features={"dna": MarkovChain("ACGT")}).fit(X, y)
    with pytest.raises(ValueError, match="one column of sequences"):
        bg.NaiveBayesClassifier({("dna", "size"): MarkovChain("ACGT")}).fit(X, y)


def test_draws_have_the_probabilities_of_the_chain():
    chain = MarkovChain("ab", 2, length=3)
    p = chain.sample_parameters(np.random.default_rng(5))["probability"]
    drawn = chain.draw({"probability": np.broadcast_to(p, (20_000, *p.shape))}, np.random.default_rng(0))
    with x64():
        by_program = np.asarray(chain.likelihood({"probability": p}).sample(jax.random.PRNGKey(0), (20_000,)))
    every = ["".join(w) for w in itertools.product("ab", repeat=3)]
    expected = np.array([probability(chain, p, word) for word in every])
    for rows in (drawn, by_program):
        counts = Counter(map("".join, np.array(["a", "b"])[rows.astype(int)]))
        found = np.array([counts[word] for word in every])
        assert stats.chisquare(found, 20_000 * expected).pvalue > 1e-4


def test_chains_of_nuts_begin_beside_other_columns():
    """Gaussian columns move in coordinates of their own, and sequences with gaps in none."""
    leaf = MarkovChain("ab", gap="?")
    model = NaiveBayes(DirichletCategorical(1.0, 2), {"word": leaf, "size": NormalInverseGamma(0.0, 1.0, 2.0, 2.0)})
    x = {"word": leaf.check(["a?b", "ab", "b?a", "bb"]), "size": np.array([0.1, 0.3, 2.0, 2.5])}
    sampled, sums, _ = whitened(model, model.statistics(x, np.array([0, 0, 1, 1])))
    draws = sampled.starting_draws(sums, np.random.default_rng(0), (5,))
    assert draws["word.probability"].shape == (5, 2, 3, 2) and draws["size.log_variance"].shape == (5, 2)


def test_one_place_that_tells_the_class_is_no_column():
    """The symbols of a sequence are no columns of a table, whatever walks these."""
    table, y = pd.DataFrame({"q": ["abab", "baba"] * 30, "z": np.arange(60.0) % 7}), [0, 1] * 30
    classifier = bg.NaiveBayesClassifier({"q": MarkovChain("ab")}, random_state=0).fit(table, y)
    assert classifier.score(table, y) == 1
    assert list(classifier.explain(table[:2]).term.values) == ["prior", "q", "z"]
    assert set(classifier.sample(3)[0].columns) == {"q", "z"}
    refuses(lambda: classifier.to_arviz(table, y, columns=True), r"columns \['q'\] hold sequences of any length")
