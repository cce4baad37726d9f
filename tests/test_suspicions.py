"""One record of what to look at before a score is believed: in Python, by `fit` and by `compare`."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from test_cli_compare import run

import bayesgen as bg
from bayesgen.comparison import compare
from bayesgen.sheets.cleaning import prepare
from bayesgen.tables.suspicions import Coded, gap_codes, of_telling, of_twins
from bayesgen.tables.text import slips as slips_of

N = 120
RNG = np.random.default_rng(0)
Y = RNG.choice(["no", "yes"], N)
Z = RNG.normal(size=N).round(6)


@pytest.fixture
def suspicions(tmp_path):
    def read(table, **options):
        path = tmp_path / "t.csv"
        pd.DataFrame(table).to_csv(path, index=False)
        account = bg.read_table(path, "y", **options)[1]
        assert set(account.suspicions) <= set(account.notes)
        assert not account.suspicions or "Look at these first:\n  - " in str(account)
        return account.suspicions

    return read


def test_a_plain_table_has_none(suspicions):
    assert suspicions({"z": Z, "kind": RNG.choice(["u", "v"], N), "y": Y}) == ()
    penguins, account = bg.read_table("penguins", "species")
    assert len(penguins) == 344 and account.suspicions == ()
    account = bg.read_table("anes96", "vote")[1]  # in the order of incomes
    assert account.suspicions == () and "people" not in str(account)


def test_every_column_of_a_kind_is_named(suspicions):
    bits = {f"sign {j}": RNG.integers(0, 2, N) for j in range(9)}
    numbers = {f"nr{j}": RNG.permutation(N) for j in range(8)}
    ranks = {f"rank{j}": RNG.permutation(N) + 7 for j in range(8)}
    copies = {f"copy{j}": np.where(Y == "yes", j, -1) for j in range(8)}
    told = suspicions({"z": Z, **bits, **numbers, **ranks, **copies, "y": Y})
    for names, words in ((bits, "only 0 and 1"), (numbers, "a row number"), (ranks, "no whole number twice")):
        (text,) = (text for text in told if words in text)
        assert all(name in text for name in names) and " more" not in text
    (text,) = (text for text in told if "one value for each class, as if copied from y" in text)
    assert all(name in text for name in copies)


def test_a_column_that_tells_the_class_alone_is_told(suspicions):
    form = np.where(Y == "yes", RNG.choice(["A", "B"], N), RNG.choice(["C", "D", "E"], N))
    almost = form.copy()
    almost[0] = "A" if Y[0] == "no" else "C"
    (text,) = suspicions({"z": Z, "form": form, "almost": almost, "y": Y})
    after = "far better than all others together: drop=, if that is known only after the class"
    assert text == f"form, almost tells y alone, {after}"
    names = [f"{label}{i // 3}" for i, label in enumerate(Y)]  # hardly a value in several rows, each of one class
    assert suspicions({"z": Z, "name": names, "y": Y}) == ()


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (RNG.integers(20, 74, N), r"y has 4\d values in 120 rows, \d+ of them in one row alone: a number or a name"),
        (np.arange(N) % 54, "y has 54 values in 120 rows: a number or a name, perhaps, and no class"),
        (np.array([f"p{i % 40}" for i in range(N)]), "y has 40 values in 120 rows: a number or a name"),
        (np.r_[Y[:-8], [f"odd {i}" for i in range(8)]], "y: one row alone is of 'odd 0', .*, 'odd 6', 'odd 7'; such"),
        (np.r_[Y[:-4], list("-??-")], r"y ambiguous: \['-', '\?'\] in 4 rows.*missing=\['-', '\?'\] makes it missing"),
    ],
    ids=["ages", "54 values", "names", "one row", "signs"],
)
def test_odd_classes_are_one_line(suspicions, labels, told):
    (text,) = suspicions({"z": Z, "y": labels})
    assert pd.Series([text]).str.match(told).all(), text


def test_plain_classes_are_not_odd(suspicions):
    assert suspicions({"z": Z, "y": np.where(Y == "yes", "+", "-")}) == ()  # two signs are the two classes
    letters = [chr(97 + i % 26) for i in range(26 * 50)]
    assert suspicions({"z": np.random.default_rng(1).normal(size=len(letters)), "y": letters}) == ()
    assert suspicions({"z": Z, "y": np.r_[Y[:-4], list("-??-")]}, missing=["-", "?"]) == ()


@pytest.mark.compiles
@pytest.mark.usefixtures("few_members")
def test_fit_and_compare_print_the_record_and_hold_copies_together(tmp_path):
    table = pd.DataFrame({"z": Z, "w": RNG.normal(size=N).round(3), "v": RNG.normal(size=N).round(3), "y": Y})
    table = pd.concat([table, table]).sample(frac=1, random_state=0)
    table.assign(X=RNG.permutation(2 * N), smoke=0.0 + (table["z"].to_numpy() > 1)).to_csv(
        tmp_path / "t.csv", index=False
    )
    record = (
        "Look at these first:",
        "- X left out: a row number, it seems: it counts the rows; --number keeps it",
        "- smoke ambiguous: only 0 and 1, taken as numbers: --bernoulli smoke has them as True and False",
        "- 120 of 240 rows repeat another, class and all; by chance 0 would: taken for copies, which are held out "
        "together unless --group says what rows belong to",
    )
    lines = " ".join(record)
    code, out, err = run(tmp_path / "t.csv", "--target", "y", "--output", tmp_path / "m", command="fit")
    assert code == 0 and lines in out and (out + err).count("repeat another") == 1, out
    options = (tmp_path / "t.csv", "--target", "y", "--model", "nb", "--inference", "exact")
    code, out, _ = run(*options)
    assert code == 0 and lines in out.split("accuracy")[0]
    result = json.loads(run(*options, "--json")[1])
    told = result["data"]
    assert [f"- {text}" for text in told["suspicions"]] == [*record[1:]] and set(told["suspicions"]) <= set(
        told["notes"]
    )
    pd.read_csv(tmp_path / "t.csv").assign(day=range(2 * N)).to_csv(tmp_path / "days.csv", index=False)
    for option in ("--group", "--order"):  # which part the copies, whatever they are
        code, out, _ = run(tmp_path / "days.csv", *options[1:], option, "day")
        assert code == 0 and f"that are not held out together by {option} make scores too good" in out
        assert out.count("repeat another") == 1 and "taken for copies" not in out
    X = bg.read_table(tmp_path / "t.csv", "y")[0]
    with pytest.warns(UserWarning, match="rows repeat another"):
        scores = compare(X.drop(columns="y"), X["y"], inferences=["exact"]).scores("exact")
    assert result["inferences"]["exact"]["log_loss"] == pytest.approx(scores.log_loss, rel=1e-12)


def honest(rng, rows):
    """Return a table with a class, none of whose columns numbers its rows, tells the class alone or repeats another."""
    y = rng.integers(0, int(rng.choice([2, 3])), rows)
    table = {
        "seen": rng.normal(2.326 * (y == 1)),
        "lab": np.exp(rng.normal(0.3 * y, 0.8)).round(2),
        "kind": rng.choice(["u", "v", "w"], rows),
    }
    table |= {
        "age": rng.integers(18, 90, rows),
        "count": rng.poisson(2 + y),
        "money": rng.integers(10_000, 200_000, rows),
    }
    return pd.DataFrame(table), y


PLANTED = {
    "a counter with an empty cell": lambda rng, X, y: pd.Series(rng.permutation(len(y)) + 1.0).mask(y.cumsum() == 3),
    "a counter sorted by class": lambda rng, X, y: np.argsort(np.argsort(y, kind="stable")),
    "a counter times ten": lambda rng, X, y: 10 * (rng.permutation(len(y)) + 7),
    "a counter in steps of three": lambda rng, X, y: 3 * rng.permutation(len(y) + 5)[: len(y)] + 1001,
    "a number a patient": lambda rng, X, y: np.arange(len(y)) // 3 + 12,
    "a number that separates": lambda rng, X, y: y + rng.normal(0, 1e-3, len(y)),
    "gaps in one class": lambda rng, X, y: pd.Series(rng.normal(size=len(y))).mask(y == 0),
    "a number of one class alone": lambda rng, X, y: np.where(y == 1, rng.integers(1, 50, len(y)), 0),
    "a column twice": lambda rng, X, y: X["kind"].map({"u": "1", "v": "x", "w": "b"}),
    "inches": lambda rng, X, y: (X["age"] / 2.54).round(2),
    "turned": lambda rng, X, y: 1 / X["lab"],
}  # fmt: skip


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_planted_is_told_by_what_it_is_and_does(tmp_path, kind):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = honest(rng, 90)
        X.assign(q=PLANTED[kind](rng, X, y), y=y).to_csv(tmp_path / "t.csv", index=False)
        account = bg.read_table(tmp_path / "t.csv", "y")[1]
        (told,) = [note for note in account.notes if note.startswith("q ")]
        assert not [note for note in account.suspicions if note != told]


def test_honest_columns_are_not_suspicious():
    """Of 400 tables with a predictor of AUC .95 none, nor of those that every collection has."""
    for seed in range(400):
        X, y = honest(rng := np.random.default_rng(seed), int(rng.choice([40, 60, 120, 400])))
        columns = {name: Coded(values.to_numpy(float), True) for name, values in X.drop(columns="kind").items()}
        assert not [*of_telling("y", columns, y, np.unique(y)), *of_twins(columns)], seed
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True, as_frame=True)
        columns = {name: Coded(values.to_numpy(float), True) for name, values in X.items()}
        assert not [*of_telling("y", columns, y.to_numpy(), np.unique(y)), *of_twins(columns)]


CLEAN = {
    "caps": lambda rng, n: np.minimum(rng.normal(80, 15, n).round(), 99),
    "counts with many zeros": lambda rng, n: rng.poisson(20, n) * (rng.random(n) < 0.7),
    "halves of a limit": lambda rng, n: (x := rng.lognormal(3, 1, n).round(1)) * (x >= 5) + 2.5 * (x < 5),
    "long tails": lambda rng, n: rng.lognormal(3, 2, n).round(),
    "without a mean": lambda rng, n: rng.standard_cauchy(n).round(1),
    "marks": lambda rng, n: rng.integers(1, 6, n),
    "ages": lambda rng, n: rng.integers(18, 100, n),
    "percent": lambda rng, n: rng.integers(0, 101, n),
    "two groups": lambda rng, n: np.where(rng.random(n) < 0.1, rng.normal(100, 1, n), rng.normal(0, 1, n)).round(1),
    "cold": lambda rng, n: rng.normal(-5, 8, n).round(),
}


@pytest.mark.parametrize("kind", CLEAN)
def test_no_number_of_a_clean_column_is_a_code(kind):
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = CLEAN[kind](rng, int(rng.choice([12, 25, 60, 150, 400, 1000])))
        assert gap_codes(x) == [], x


@pytest.mark.parametrize("code", [-999, 999, -9, 99, -99, 777])
def test_codes_of_missing_answers_are_told_first_and_the_option_reads_them(tmp_path, code):
    rng, found = np.random.default_rng(1), 0
    for rows in (60, 200, 400) * 5:
        x = rng.normal(45, 6, rows).round(1)
        gone = rng.choice(rows, 6, replace=False)
        x[gone] = code
        y = np.resize(["a", "b", "b"], rows)
        pd.DataFrame({"x": x, "z": rng.normal(size=rows), "y": y}).to_csv(tmp_path / "t.csv", index=False)  # -999.0
        _, account = bg.read_table(tmp_path / "t.csv", "y")
        told = [text for text in account.suspicions if f"x {code} in 6 rows lies apart" in text]
        if told:
            assert account.suspicions[0] == told[0] and told[0].endswith(f"missing='x={code}'")
            table, again = bg.read_table(tmp_path / "t.csv", "y", missing=f"x={code}")
            assert np.flatnonzero(table["x"].isna()).tolist() == sorted(gone) and not again.suspicions
        found += bool(told)
    assert found >= 13


def test_a_slip_of_the_keyboard_is_told_and_no_other_pair_of_words():
    often = ["negativ", "Schwester", "left lower lobe", "positiv", "Chirurgie"]
    slips = ["negatv", "Schwetser", "left lower lobbe", "postiv", "Chirurqie"]
    apart = [
        ("male", "female"),
        ("hypotonia", "hypertonia"),
        ("typical", "atypical"),
        ("L4", "L5"),
        ("Grad II", "Grad III"),
    ]
    apart += [
        ("type A", "type B"),
        ("systolic", "diastolic"),
        ("Iran", "Iraq"),
        ("Stufe 12", "Stufe 13"),
        ("rot", "tor"),
    ]
    for word, slip in zip(often, slips, strict=True):
        assert slips_of({word: 30, slip: 1, "other": 20}) == {word: [slip]}, slip
        assert slips_of({word: 30, slip: 4}) == slips_of({word: 9, slip: 1}) == {}
    for pair in apart:
        assert slips_of({pair[0]: 90, pair[1]: 1}) == slips_of({pair[1]: 90, pair[0]: 1}) == {}, pair
    table = pd.DataFrame({"test": ["negativ"] * 30 + ["positiv"] * 29 + ["negatv"], "x": np.arange(60) % 7})
    told = prepare(table.assign(y=np.arange(60) % 2), "y").suspicions
    assert told == ("test ['negatv'] in 1 row, perhaps 'negativ', which has 30: same='test=negativ,negatv'",)
    assert any("same='test=" in one for one in prepare(table, "test").suspicions)
