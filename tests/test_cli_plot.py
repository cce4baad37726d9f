"""`bayesgen plot`."""

import numpy as np
import pandas as pd
import pytest
from commands import run
from matplotlib.figure import Figure

import bayesgen as bg
from bayesgen import data

pytestmark = pytest.mark.usefixtures("few_members")  # commands do to the average of all what they do to this one


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    """A folder with a saved classifier and rows that it did not see."""
    folder, table = tmp_path_factory.mktemp("birds"), data.load("penguins").sample(frac=1, random_state=0)
    y = table["species"][:200]
    bg.NaiveBayesClassifier(random_state=0).fit(table[:200].drop(columns="species"), y).save(
        folder / "birds.safetensors"
    )
    table[200:].to_csv(folder / "rows.csv", index=False)
    (folder / "costs.csv").write_text("species,count,leave\nGentoo,5,1\nAdelie,0,1\nChinstrap,1,2\n")
    return folder


@pytest.mark.parametrize(
    "given",
    [
        "--of reliability",
        "--of probabilities",
        "--of confusion",
        "--of confusion --loss costs.csv --reject-cost 0.5",
        "--of importance",
        pytest.param("--of decision_regions --columns bill_length_mm,body_mass_g", marks=pytest.mark.compiles),
    ],
)
def test_plot_draws_how_a_classifier_does_on_rows(birds, tmp_path, monkeypatch, given):
    monkeypatch.chdir(birds)
    words = f"birds.safetensors rows.csv {given} --target species --output".split()
    code, out, err = run(*words, tmp_path / "a.svg", command="plot")
    assert (code, err) == (0, "")
    assert "144 rows; written to" in out and "missing values" in out
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")


@pytest.mark.compiles
def test_plot_draws_what_was_learned(birds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(birds / "birds.safetensors", command="plot")
    assert (code, out, err) == (0, "Written to picture.png", "")
    whole = (tmp_path / "picture.png").read_bytes()
    assert whole.startswith(b"\x89PNG")
    run(birds / "birds.safetensors", "--columns", "island", command="plot")
    assert (tmp_path / "picture.png").read_bytes() != whole


def test_many_categories_are_the_most_frequent_ones_with_names_that_stand_upright():
    rng = np.random.default_rng(0)
    words = np.array([f"category number {i}" for i in range(300)])
    share = 1 / np.arange(1, 301)
    t = rng.integers(2, size=3000)
    X = pd.DataFrame({"c": np.where(t, rng.permutation(words)[0], rng.choice(words, 3000, p=share / share.sum()))})
    classifier = bg.NaiveBayesClassifier().fit(X, t)
    ax = bg.plot.column(classifier, "c", ax=Figure().subplots())
    shown = [text.get_text() for text in ax.get_xticklabels()]
    frequent = X.groupby(t)["c"].value_counts(normalize=True).groupby("c").max().nlargest(24).index
    assert len(shown) == 24 and len(set(shown) & set(frequent)) >= 22  # but for ties
    assert ax.get_xlabel() == f"c: the 24 most frequent of {X['c'].nunique()} categories" and len(ax.patches) == 48
    assert {text.get_rotation() for text in ax.get_xticklabels()} == {90.0} and not ax.lines


@pytest.mark.compiles
def test_regions_over_whole_numbers_with_a_gap(birds, tmp_path, monkeypatch):
    """pandas has a type of its own for them."""
    monkeypatch.chdir(birds)
    given = ["--of", "decision_regions", "--target", "species", "--output", tmp_path / "a.svg"]
    table = data.load("penguins").sample(frac=1, random_state=0)[200:]
    mass = table["body_mass_g"].astype("Int64").mask(np.arange(len(table)) == 3)
    table.assign(body_mass_g=mass).to_parquet(tmp_path / "rows.parquet")
    columns = ["--columns", "bill_length_mm,body_mass_g"]
    assert run("birds.safetensors", tmp_path / "rows.parquet", *given, *columns, command="plot")[::2] == (0, "")


@pytest.mark.parametrize(
    "given, message",
    [
        ("--of pie", "--of must be one of columns, members, reliability"),
        ("--of members", "averaged classifiers alone have members"),
        ("--of reliability", "--of reliability needs FILE"),
        ("rows.csv", "--of columns takes no FILE"),
        ("rows.csv --of reliability", "needs --target, the column of rows.csv that holds the classes"),
        ("rows.csv --of reliability --target sex", "it holds ['male', 'female']; the classes are ['Adelie'"),
        ("rows.csv --of decision_regions --target species", "name them by --columns"),
        ("--columns bill", "no column 'bill' in the fit; there are: island, bill_length_mm"),
        ("--output birds.safetensors", "it is the file that is read"),
        ("--output picture.doc", "a picture ends in .png, .svg or .pdf, not in '.doc'"),
    ],
)
def test_plot_says_what_it_needs(birds, monkeypatch, given, message):
    monkeypatch.chdir(birds)
    code, _, err = run("birds.safetensors", *given.split(), command="plot")
    assert code == 2 and message in err
