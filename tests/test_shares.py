"""Labels that are shares of the classes: equal to a row for each vote, and refused where they cannot be taken."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from commands import run
from refusals import refuses
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen.cli import app

RNG = np.random.default_rng(0)
X = pd.DataFrame({"length": RNG.normal(size=24), "kind": RNG.choice(["a", "b"], 24), "size": RNG.normal(size=24)})
X.loc[3, "size"] = np.nan
VOTES = RNG.multinomial(5, [0.5, 0.3, 0.2], 24)
P = pd.DataFrame(VOTES / 5, columns=["none", "mild", "bad"])
ROWS = np.repeat(np.arange(24), 5)
LABELS = np.concatenate([np.repeat(P.columns.to_numpy(str), votes) for votes in VOTES])
NUMBERS = ["length", "size"]

CLASSIFIERS = {
    "naive Bayes": (bg.NaiveBayesClassifier(), list(X)),
    "discriminant": (bg.GaussianDiscriminantClassifier(covariance="diagonal"), NUMBERS),
    "map": (bg.NaiveBayesClassifier(inference="map"), list(X)),
    "softmax": (bg.LogisticClassifier(inference="map", missing="mean"), list(X)),
    "ordered": (bg.OrderedClassifier(order=["none", "mild", "bad"], inference="map", missing="mean"), list(X)),
}


@pytest.mark.filterwarnings("ignore:.* rows repeat another")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_shares_are_a_row_for_each_vote(name):
    classifier, columns = CLASSIFIERS[name]
    shared = clone(classifier).fit(X[columns], P, label_weight=5)
    voted = clone(classifier).fit(X[columns].iloc[ROWS], LABELS)
    assert list(shared.classes_) == list(voted.classes_)
    tolerance = 1e-12 if name in ("naive Bayes", "discriminant", "map") else 1e-9  # where Newton's search ends
    assert np.allclose(shared.predict_proba(X[columns]), voted.predict_proba(X[columns]), rtol=0, atol=tolerance)
    assert not hasattr(shared, "log_evidence_") and (name != "naive Bayes" or hasattr(voted, "log_evidence_"))


def test_two_classes_of_a_probit_are_a_row_for_each_vote():
    two = P[["none", "mild"]] + np.array(P[["bad"]]) / 2
    shared = bg.ProbitClassifier(inference="map").fit(X[["length"]], two, label_weight=10)
    rows = np.concatenate([np.repeat(two.columns.to_numpy(str), n) for n in (10 * two).round().astype(int).to_numpy()])
    voted = bg.ProbitClassifier(inference="map").fit(X[["length"]].iloc[np.repeat(np.arange(24), 10)], rows)
    assert np.allclose(shared.predict_proba(X[["length"]]), voted.predict_proba(X[["length"]]), atol=1e-9)


def test_columns_are_matched_by_class():
    first = bg.NaiveBayesClassifier().fit(X, P).predict_proba(X)
    turned = bg.NaiveBayesClassifier().fit(X, P[["bad", "none", "mild"]]).predict_proba(X)
    array = bg.NaiveBayesClassifier().fit(X, P.to_numpy(), classes=["none", "mild", "bad"]).predict_proba(X)
    assert np.array_equal(first, turned) and np.array_equal(first, array)


def test_certain_shares_are_labels():
    labels = np.array(["a", "b"] * 12)
    certain = np.eye(2)[(labels == "b").astype(int)]
    shared = bg.NaiveBayesClassifier().fit(X, certain, classes=["a", "b"], sample_weight=np.arange(24))
    whole = bg.NaiveBayesClassifier().fit(X, labels, sample_weight=np.arange(24))
    assert np.allclose(shared.predict_proba(X), whole.predict_proba(X), atol=1e-12)


def test_pieces_add_and_are_forgotten():
    whole = bg.NaiveBayesClassifier(inference="exact").fit(X, P)
    pieces = bg.NaiveBayesClassifier().partial_fit(X[:10], P[:10]).partial_fit(X[10:], P[10:])
    assert np.allclose(pieces.predict_proba(X), whole.predict_proba(X), atol=1e-12)
    pieces.partial_fit(X[:5], P[:5].to_numpy()[:, [2, 1, 0]]).forget(X[:5], P[:5])  # classes_ are bad, mild, none
    assert np.allclose(pieces.predict_proba(X), whole.predict_proba(X), atol=1e-9)
    assert not hasattr(pieces, "log_evidence_")


def test_shares_of_raters_teach_more_than_their_majority():
    """Twenty tables of 60 rows and five raters, as in the how-to."""
    raters = pytest.importorskip("benchmarks.raters")  # a source distribution has the tests alone
    found = raters.losses(bg.NaiveBayesClassifier).round(3).to_dict()
    assert found == {"majority": 0.512, "one rater": 0.495, "shares": 0.481, "floor": 0.461}


@pytest.mark.parametrize("name", ["naive Bayes", "softmax"])
def test_batches_of_shares_are_the_whole(name):
    classifier, x = CLASSIFIERS[name][0], X[["length"]].to_numpy()
    whole = clone(classifier).fit(x, P).predict_proba(x)
    found = clone(classifier).fit_batches([(x[:9], P[:9]), (x[9:], P[9:])], progress=False)
    assert np.allclose(found.predict_proba(x), whole, atol=1e-9) and not hasattr(found, "log_evidence_")


def test_the_score_is_the_mean_share_of_what_is_predicted():
    classifier = bg.NaiveBayesClassifier().fit(X, P)
    predicted = classifier.predict(X)
    by_hand = np.mean([row[label] for (_, row), label in zip(P.iterrows(), predicted, strict=True)])
    assert classifier.score(X, P) == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.filterwarnings("ignore:.* rows repeat another")
def test_a_row_is_left_out_with_all_its_shares():
    classifier = bg.NaiveBayesClassifier().fit(X, P, label_weight=5)
    found = classifier.leave_one_out(X, P, sample_weight=np.full(24, 5.0))
    voted = bg.NaiveBayesClassifier().fit(X.iloc[ROWS], LABELS).leave_one_out(X.iloc[ROWS], LABELS, groups=ROWS)
    assert np.allclose(found.log_joint[ROWS], voted.log_joint, atol=1e-9)
    assert found.elpd == pytest.approx(voted.elpd / 5, abs=1e-9)
    assert found.conditional.sum() == pytest.approx(voted.conditional.sum() / 5, abs=1e-9)


def test_the_log_loss_is_the_mean_by_share():
    p = bg.NaiveBayesClassifier().fit(X, P).predict_proba(X)
    labels = ["bad", "mild", "none"]
    whole = bg.evaluation.log_loss(LABELS, p[ROWS], labels=labels)
    assert bg.evaluation.log_loss(P, p, labels=labels) == pytest.approx(whole, abs=1e-12)
    assert bg.evaluation.log_loss(P, pd.DataFrame(p, columns=labels)) == pytest.approx(whole, abs=1e-12)
    with pytest.raises(ValueError, match="one column of shares for each of the classes"):
        bg.evaluation.log_loss(P, p)  # nothing says which column is which


def test_the_average_learns_from_shares(few_members):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 2))
    votes = rng.binomial(5, 1 / (1 + np.exp(-2 * x[:, 0]))) / 5
    shares = np.column_stack([1 - votes, votes])
    found = bg.AveragedClassifier().fit(x, shares, classes=["no", "yes"])
    assert np.corrcoef(found.predict_proba(x)[:, 1], votes)[0, 1] > 0.7
    with pytest.raises(ValueError, match="exponent='loo' is chosen by leaving out rows of one class"):
        bg.NaiveBayesClassifier(exponent="loo").fit(x, shares, classes=["no", "yes"])


@pytest.mark.parametrize("rows", [30, 120])
def test_labels_are_shares_of_one_class(few_members, rows):
    """Of 30 rows of two numbers each leaves with one of the other class, of 120 alone."""
    rng = np.random.default_rng(rows)
    x, weight = rng.normal(size=(rows, 2)), rng.uniform(0.2, 3, rows)
    y = (x[:, 0] + 0.5 * rng.normal(size=rows) > 0).astype(int)
    for given in (None, weight):
        labels = bg.AveragedClassifier().fit(x, np.array(["no", "yes"])[y], given)
        shares = bg.AveragedClassifier().fit(x, np.eye(2)[y], given, classes=["no", "yes"])
        assert np.allclose(shares.predict_proba(x), labels.predict_proba(x), rtol=0, atol=1e-9)
        assert abs(shares.scores_["nested"] - labels.scores_["nested"]) < 1e-9


def test_models_are_compared_on_shares():
    outside = LogisticRegression()  # knows no shares: it gets a row for each class, with weights
    models = {"shares": bg.NaiveBayesClassifier(), "rows": outside, "neither": KNeighborsClassifier()}
    numbers = X[["length"]]
    result = bg.compare_models(numbers, P, models, folds=3)
    assert list(result.classes) == ["bad", "mild", "none"] and "neither shares" in result.notes[0].text
    test = np.flatnonzero(result.fold == 1)
    train = np.setdiff1d(np.arange(24), test)
    fitted = bg.NaiveBayesClassifier().fit(numbers.iloc[train], P.iloc[train])
    assert np.allclose(result.probability["shares"][test], fitted.predict_proba(numbers.iloc[test]), atol=1e-12)
    row, code = np.nonzero(P.to_numpy()[train])
    peer = clone(outside).fit(numbers.iloc[train[row]], P.columns[code], P.to_numpy()[train][row, code])
    assert np.allclose(result.probability["rows"][test], peer.predict_proba(numbers.iloc[test]), atol=1e-6)
    losses = -(P[result.classes].to_numpy() * np.log(result.probability["shares"])).sum(1)
    assert np.allclose(result.log_losses("shares"), losses, atol=1e-12)
    assert result.scores("shares").log_loss == pytest.approx(losses.mean(), abs=1e-12)
    assert result.table.loc["shares", "log_loss"] == pytest.approx(losses.mean(), abs=1e-12)
    kept = bg.compare_models(numbers, P, {"shares": models["shares"]}, folds=3, return_estimators=True)
    worth = bg.comparison.held_out_importance(kept, "shares")["length"]
    alone = P[kept.classes].to_numpy().copy()
    for fold in (1, 2, 3):  # without its one column a row has the class prior of the fit
        alone[kept.fold == fold] *= np.log(P[kept.classes][kept.fold != fold].mean().to_numpy())
    assert worth.mean() == pytest.approx(-alone.sum(1).mean() - losses.mean(), abs=0.02)
    refuses(lambda: bg.compare_models(numbers, P, models, order=np.arange(24)), "order takes one label a row")


def test_a_saved_fit_knows_that_it_has_no_evidence(tmp_path):
    for name in ("naive Bayes", "softmax"):
        classifier, columns = CLASSIFIERS[name]
        clone(classifier).fit(X[columns], P).save(tmp_path / "m.safetensors")
        assert not hasattr(bg.load(tmp_path / "m.safetensors"), "log_evidence_")
    with pytest.raises(AttributeError, match="shares of the classes as labels"):
        bg.compare_evidence({"one": bg.NaiveBayesClassifier().fit(X, P)})


def in_a_file(tmp_path, shares=P):
    """Write the rows beside shares of their classes as an office does, with a row that has none; return the path."""
    table = pd.concat([X, shares], axis=1)
    table.loc[24] = [0.5, "a", 1.5, np.nan, np.nan, np.nan]
    table.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    return tmp_path / "t.csv"


@pytest.mark.compiles
def test_a_file_of_shares_is_compared_and_fitted(tmp_path):
    path, of = in_a_file(tmp_path), ["--target-shares", "none,mild,bad"]
    given = [path, *of, "--model", "nb", "--inference", "exact", "--folds", 3, "--net-benefit", "bad"]
    code, out, _ = run(*given, "--output", tmp_path / "report", "--json")
    assert code == 0
    found, want = json.loads(out), bg.compare_models(X, P, ["naive Bayes"], folds=3)
    assert found["inferences"]["exact"]["log_loss"] == pytest.approx(want.table["log_loss"].iloc[0], abs=1e-12)
    assert found["data"]["classes"] == pytest.approx({name: P[name].sum() for name in sorted(P)})
    row, code = np.nonzero(P[sorted(P)].to_numpy())
    p, weights = want.probability["naive Bayes"][row], P[sorted(P)].to_numpy()[row, code]
    benefit = bg.evaluation.net_benefit(code, p, positive=0, labels=[0, 1, 2], weights=weights, groups=row)
    assert found["net_benefit"]["exact"]["model"] == pytest.approx(benefit.model.tolist(), abs=1e-12)
    assert found["net_benefit"]["exact"]["few"] == benefit.few.tolist()
    assert sum(found["by_class"]["actions"]["bad"].values()) == pytest.approx(P["bad"].sum())
    assert {"share_none", "exact_p_bad"} < {*pd.read_csv(tmp_path / "report" / "predictions.csv")}
    code, out, _ = run(path, *of, "--model", "nb", "--output", tmp_path / "m.safetensors", command="fit")
    assert code == 0 and "1 row left out: no none, mild, bad (3 empty)" in out
    probability = bg.NaiveBayesClassifier().fit(X, P).predict_proba(X)
    assert np.allclose(bg.load(tmp_path / "m.safetensors").predict_proba(X), probability, atol=1e-9)


@pytest.mark.compiles
def test_the_last_line_of_a_comparison_of_shares_is_a_command(tmp_path, few_members, monkeypatch):
    monkeypatch.chdir(tmp_path)
    high = 1 / (1 + np.exp(-5 * X["length"]))
    path = in_a_file(tmp_path, pd.DataFrame({"none": 1 - high, "mild": high / 2, "bad": high / 2}))
    result = CliRunner().invoke(app, ["compare", str(path), "--target-shares", "none,mild,bad", "--inference", "map"])
    name, *words = shlex.split(result.stdout.splitlines()[-1])
    assert name == "bayesgen" and words[2:4] == ["--target-shares", "none,mild,bad"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert run("model.safetensors", path, command="predict")[0] == 0
    assert list(pd.read_csv("predictions.csv"))[2:] == ["p_bad", "p_mild", "p_none"]


def test_percent_signs_of_shares_are_read(tmp_path):
    percent = pd.concat([X[["length"]], (100 * P).round().astype(int).astype(str) + " %"], axis=1)
    percent.to_csv(tmp_path / "t.csv", index=False)
    given = [tmp_path / "t.csv", "--target-shares", "none,mild,bad", "--model", "nb", "--output", tmp_path / "m"]
    assert run(*given, command="fit")[0] == 0
    whole = bg.NaiveBayesClassifier().fit(X[["length"]], P).predict_proba(X[["length"]])
    assert np.allclose(bg.load(tmp_path / "m").predict_proba(X[["length"]]), whole, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --target, the column of the classes, or --target-shares"),
        (["--target", "kind", "--target-shares", "none,mild,bad"], "give --target"),
        (["--target-shares", "none"], "two columns of shares or more"),
        (["--target-shares", "none,mild"], "must hold shares >= 0 that sum to 1 in each row; not so in"),
        (["--target-shares", "none,kind"], "column 'kind' is to hold shares of a class, and holds '[ab]'"),
        (["--target-shares", "none,mild,worse"], "no column 'worse'"),
        (["--target-shares", "none,mild,bad", "--order", "size"], "--order takes one label a row"),
    ],
    ids=str,
)
def test_files_of_shares_that_cannot_be_taken_are_refused(tmp_path, arguments, message):
    code, _, err = run(in_a_file(tmp_path), *arguments)
    assert code == 2 and re.search(message, err) and "label_weight" not in err


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (P.to_numpy(), {}, "y should be a 1d array of labels; of shares"),
        (P.to_numpy(), {"classes": ["a", "b"]}, "classes must name each of the 3 columns"),
        (P * 5, {}, "sum to 1 in each row; not so in 24 rows, first row 0"),
        (P.assign(none=P["none"] - 1, mild=P["mild"] + 1), {}, "shares >= 0"),
        (P.drop(index=7).reindex(range(24)), {}, "in 1 row, first row 7"),
        (P[:20], {}, "X has 24 rows and y has 20"),
        (LABELS[:24], {"label_weight": 5}, "label_weight is of shares"),
        (P, {"label_weight": -np.ones(24)}, "label_weight"),
        (P, {"label_weight": [1, 2]}, "label_weight must hold one finite number >= 0 for each of the 24 rows"),
        (P.assign(none=P["none"] + P["bad"], bad=0.0), {}, "no row has a share of the classes"),
    ],
)
def test_shares_that_cannot_be_taken_are_refused(y, options, message):
    refuses(lambda: bg.NaiveBayesClassifier().fit(X, y, **options), message)


def test_other_classes_are_refused():
    classifier = bg.NaiveBayesClassifier().fit(X, P)
    with pytest.raises(ValueError, match="lacks \\['none'\\] and has \\['well'\\] besides"):
        classifier.partial_fit(X, P.rename(columns={"none": "well"}))
