"""One record of what to look at before a score is believed: in Python, by `fit` and by `compare`."""

import json

import numpy as np
import pandas as pd
import pytest
from test_cli_compare import run

import bayesgen as bg
from bayesgen.comparison import compare

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
    assert text == "form tells y alone, one class for each value: drop=, if that is known only after the class"
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
