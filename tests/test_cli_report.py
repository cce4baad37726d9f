"""The page that `bayesgen compare` writes, and its JSON."""

import base64
import json
import re
import shlex
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from commands import run
from matplotlib.image import imread
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen import data
from bayesgen.cli import app
from bayesgen.comparison import candidates
from bayesgen.comparison.candidates import CANDIDATES


class Page(HTMLParser):
    """The text of a page, its tags, and the attributes of its pictures."""

    def __init__(self, path):
        super().__init__()
        self.words, self.tags, self.images = [], [], []
        self.feed(path.read_text(encoding="utf-8"))
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))

    def handle_data(self, data):
        if "style" not in self.tags[-1:]:
            self.words.append(data)


def sliding(whole, panel):
    """The parts of a picture that have the shape of a panel and begin with its first row of pixels."""
    height, width = panel.shape[:2]
    for top in range(whole.shape[0] - height + 1):
        for left in range(whole.shape[1] - width + 1):
            if np.array_equal(whole[top, left : left + width], panel[0]):
                yield whole[top : top + height, left : left + width]


@pytest.fixture
def quick(monkeypatch):
    """The candidates without the one that takes seconds."""
    monkeypatch.setattr(candidates, "CANDIDATES", {n: c for n, c in CANDIDATES.items() if n != "averaged"})


def test_the_page_tells_all_and_needs_nothing_else(tmp_path, quick):
    folder = tmp_path / "deep" / "report"
    table = data.load("penguins").iloc[::6]
    table.to_csv(tmp_path / "few birds.csv", index=False)
    given = (tmp_path / "few birds.csv", "--target", "species", "--inference", "ml,exact", "--folds", "2")
    code, out, _ = run(*given, "--drop", "year", "--drop", "sex", "--output", folder)
    assert code == 0 and "Written to" in out and "report.html, calibration.png" in out
    page = Page(folder / "report.html")
    assert f"few birds.csv: {len(table)} rows, 8 columns; {len(table)} rows used" in page.text
    assert "categorical: island (Biscoe, Dream, Torgersen)" in page.text
    headings = "In short, The data, Models, By class, Inferences, Calibration, What matters, To repeat it"
    for heading in headings.split(", "):
        assert heading in page.text
    for name in (*candidates.CANDIDATES, "ml", "exact"):
        assert name in page.words
    assert f'bayesgen compare "{given[0]}" --target species --inference ml,exact --folds 2' in page.text
    assert "--drop year --drop sex" in page.text
    assert "numpyro 0." in page.text and "Python 3." in page.text
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert page.tags.count("details") == 1 and ", in NumPyro" in page.text and "def model(x, t=None):" in page.text
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "http:" not in text and "https:" not in text
    # the panels of each picture are cut from that of the folder, and the first of them tells what is seen
    pictures = {"models": 1, "calibration": 2, "columns": 1, "probabilities": 1}
    images = iter(page.images)
    for name, count in pictures.items():
        whole = imread(folder / f"{name}.png")
        for place in range(count):
            image = next(images)
            panel = imread(BytesIO(base64.b64decode(image["src"].removeprefix("data:image/png;base64,"))))
            assert any(np.array_equal(panel, part) for part in sliding(whole, panel))
            assert (len(image["alt"]) > 60) == (place == 0)
    assert next(images, None) is None
    assert "calibration error" in page.images[1]["alt"] and "bill_length_mm" in page.images[3]["alt"]


@pytest.mark.compiles
def test_pictures_tables_and_draws_are_of_the_model_that_wins_and_its_command_runs(tmp_path, quick, monkeypatch):
    """Columns that are copies of one: naive Bayes loses, and what is told of a model is told of the winner."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    y = np.where(rng.random(120) < 0.5, "no", "yes")
    x = rng.normal(size=120) + 1.5 * (y == "yes")
    frame = pd.DataFrame({f"x{j}": (x + rng.normal(scale=0.05, size=120)).round(3) for j in range(4)})
    frame = frame.assign(odd=rng.permutation(120) * 1.5, mark=rng.integers(0, 2, 120), ward=np.arange(120) // 2, t=y)
    frame.to_csv("t.csv", sep=";", decimal=",", index=False)
    given = ("--sep", ";", "--decimal", ",", "--drop", "odd", "--categorical", "mark", "--group", "ward", "--folds", 2)
    rest = ("--inference", "exact", "--no-importance", "--output", "report", "--json")
    code, out, _ = run("t.csv", "--target", "t", *given, *rest)
    told = json.loads(out)
    best, call = told["best"], shlex.split(told["save"])
    assert code == 0 and best == told["by_class"]["of"] == call[call.index("--model") + 1] != "naive Bayes"
    assert run(*call[2:], command="fit")[0] == 0
    model = bg.load("model.safetensors")
    lacks = {"mark"} if best in ("shared", "full") else set()  # which take numbers only
    assert set(model.schema_.columns) == set(told["data"]["columns"]) - lacks
    page = Page(tmp_path / "report" / "report.html")
    assert f"Reliability diagram and ROC curves of {best}" in page.images[1]["alt"]
    assert "It is not the model that predicts best" in page.text and " ".join(call[:3]) in page.text
    # the table by threshold, from the file of predictions
    p = pd.read_csv("report/predictions.csv")
    named, true = p[f"{best}_p_yes"] >= 0.3, p["truth"] == "yes"
    cells = told["by_class"]["thresholds"]["0.3"]
    assert cells["sensitivity"] == pytest.approx((named & true).sum() / true.sum())
    assert cells["specificity"] == pytest.approx((~named & ~true).sum() / (~true).sum())
    assert cells["precision"] == pytest.approx((named & true).sum() / named.sum())
    assert cells["negative value"] == pytest.approx((~named & ~true).sum() / (~named).sum())
    with xr.open_datatree("report/posterior.nc", engine="h5netcdf") as tree:
        assert set(tree["posterior"].data_vars) == set(model.to_arviz()["posterior"].data_vars)


@pytest.mark.compiles
def test_the_page_is_for_telephones_the_dark_and_paper(tmp_path, quick):
    """Wide things scroll by themselves, colours follow the reader's, and nothing is cut on paper."""
    table = data.load("penguins").iloc[::6]
    table.to_csv(tmp_path / "few.csv", index=False)
    given = (tmp_path / "few.csv", "--target", "species", "--inference", "exact", "--folds", 2, "--output", tmp_path)
    assert run(*given)[0] == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("width=device-width", "color-scheme: light dark", "(prefers-color-scheme: dark)", "@media print"):
        assert words in text
    assert text.count('<div class="wide" tabindex="0"><table') == text.count("<table")
    # shrunk to 358 of 390 pixels, a panel of at most 4.8 inches shows letters of 8 points as 8 pixels or more
    for image in Page(tmp_path / "report.html").images:
        panel = imread(BytesIO(base64.b64decode(image["src"].removeprefix("data:image/png;base64,"))))
        assert panel.shape[1] <= 4.8 * 150


def test_the_page_escapes_what_a_file_holds(tmp_path):
    bad = "<script>alert(1)</script>"
    rows = pd.DataFrame({bad: ["<b>", "&amp;"] * 8, "x": range(16), '"><img src=x>': [bad, "b"] * 8})
    rows.to_csv(tmp_path / "odd.csv", index=False)
    given = ("--target", '"><img src=x>', "--model", "nb", "--inference", "exact", "--folds", 2)
    code, *_ = run(tmp_path / "odd.csv", *given, "--output", tmp_path)
    assert code == 0
    page = Page(tmp_path / "report.html")
    assert "script" not in page.tags and "b" not in page.tags[: page.tags.index("img")]
    assert bad in page.text and "&amp;" in page.text
    assert [set(image) for image in page.images] == [{"src", "alt"}] * len(page.images)


def test_how_to_cite_is_what_the_repository_says():
    from bayesgen.cli.report.page import _citation

    stated = (Path(__file__).parent.parent / "CITATION.cff").read_text()
    said = _citation()
    for field in ("title", "version", "name"):
        value = re.search(rf'^[ -]*{field}: "?([^"\n]+)"?$', stated, re.M)[1]
        assert value in said


@pytest.mark.compiles
def test_json_is_the_whole_of_standard_output(tmp_path, quick):
    table = data.load("penguins").iloc[::6]
    table.to_csv(tmp_path / "few.csv", index=False)
    given = ["compare", str(tmp_path / "few.csv"), "--target", "species", "--folds", "2", "--inference", "ml,exact"]
    result = CliRunner().invoke(app, [*given, "--json", "--output", str(tmp_path / "report")])
    assert result.exit_code == 0
    assert "Written to" in result.stderr
    found = json.loads(result.stdout, parse_constant=pytest.fail)
    whole = bg.compare_models(table.drop(columns="species"), table["species"], folds=2)
    assert found["best"] == whole.best
    for name, row in found["models"].items():
        assert row["log_loss"] == pytest.approx(whole.table.loc[name, "log_loss"])
    assert found["inferences"]["exact"]["log_loss"] == pytest.approx(found["models"]["naive Bayes"]["log_loss"])
    assert found["data"]["classes"] == table["species"].value_counts().to_dict()
    assert set(found["importance"]) == set(table.columns) - {"species"}
    assert found["command"].startswith("bayesgen compare ")


@pytest.mark.compiles
def test_net_benefit_is_told_of_held_out_probabilities(tmp_path):
    given = ("penguins", "--target", "species", "--model", "nb", "--inference", "exact", "--folds", "2")
    folder = tmp_path / "report"
    code, out, _ = run(*given, "--no-importance", "--net-benefit", "Adelie", "--json", "--output", folder)
    page = Page(folder / "report.html")
    assert code == 0 and "Net benefit in 100 rows (cases found, net of false alarms) of exact by the" in page.text
    assert any(image["alt"].startswith("Net benefit at a threshold of 0.5: exact") for image in page.images)
    predicted, curve = pd.read_csv(folder / "predictions.csv"), json.loads(out)["net_benefit"]["exact"]
    acted, right = predicted["exact_p_Adelie"] >= 0.2, predicted["truth"] == "Adelie"
    assert curve["model"][19] == pytest.approx((acted & right).mean() - (acted & ~right).mean() / 4, abs=1e-12)
    code, _, err = run(*given, "--net-benefit", "Emperor")
    assert code == 2 and "--net-benefit must be a class, one of ['Adelie', 'Chinstrap', 'Gentoo']" in err
