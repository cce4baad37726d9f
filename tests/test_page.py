"""A classifier as one web page: what its file holds, its words, and what is refused before a file is written."""

import base64
import hashlib
import json
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from commands import run

import bayesgen as bg
from bayesgen.export import to_page, words_template

ATTACKS = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--<script>",
    "\" onfocus=alert(1) x='",
    "&lt;b&gt;",
    "__proto__",
    "{name} $title ${style}",
    "\u2028\u202e\0\r\n]]>",
]


class Page(HTMLParser):
    """The tags of a page with their attributes, and the text inside each kind."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.tags, self.inside, self.text = [], [], {}
        self.raw = path.read_bytes().decode()
        self.feed(self.raw)
        self.text = {tag: "".join(parts) for tag, parts in self.text.items()}

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        self.text.setdefault(self.inside[-1] if self.inside else "", []).append(data)

    @property
    def options(self):
        return json.loads(re.search(r"^const page = (.*);$", self.text["script"], re.MULTILINE)[1])


@pytest.fixture(scope="module")
def birds():
    X = bg.data.load("penguins")[["island", "bill_length_mm", "sex"]]
    X["tagged"] = np.arange(len(X)) % 3 == 0
    return bg.NaiveBayesClassifier().fit(X, bg.data.load("penguins")["species"])


def written(classifier, tmp_path, **options):
    to_page(classifier, tmp_path / "calculator.html", **options)
    return Page(tmp_path / "calculator.html")


def test_the_page_allows_its_script_and_style_and_nothing_else(birds, tmp_path):
    page = written(birds, tmp_path)
    policy = next(given["content"] for tag, given in page.tags if given.get("http-equiv") == "Content-Security-Policy")
    hashes = {}
    for tag in ("script", "style"):
        digest = hashlib.sha256(page.text[tag].encode()).digest()
        hashes[tag] = f"'sha256-{base64.b64encode(digest).decode()}'"
    assert policy == (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not {"src", "style", "action"} & {name for _, given in page.tags for name in given}
    assert [given["href"] for _, given in page.tags if "href" in given] == ["data:,"]
    assert not re.search(r"https?:|fetch\(|XMLHttp|WebSocket|import\(|innerHTML|^export", page.raw, re.MULTILINE)
    assert len(page.raw) < 200_000


def test_every_sentence_is_used_and_can_be_said_otherwise(birds, tmp_path):
    page = written(birds, tmp_path)
    shown = {given["data-say"] for _, given in page.tags if "data-say" in given}
    program = re.sub("^const page = .*$", "", page.text["script"], flags=re.MULTILINE)
    assert shown < set(page.options["sentences"])
    assert [key for key in page.options["sentences"] if key not in shown and f'"{key}"' not in program] == [
        "yes",
        "no",
        "noscript",  # which Python puts in
    ]
    assert not set(re.findall(r'say\("(\w+)"', program)) - set(page.options["sentences"])


@pytest.mark.parametrize("attack", ATTACKS)
def test_names_and_words_are_text(attack, tmp_path):
    X = pd.DataFrame({f"{attack}x": ["a", attack, "a", attack], "n": [0.0, 1.0, 2.0, 4.0]})
    y = np.array(["b", attack, "b", attack])
    words = {key: attack for key in ("title", "introduction", "footer")}
    words |= {"columns": {"n": {"name": attack, "unit": attack, "help": attack}}, "classes": {attack: {"name": attack}}}
    loss = pd.DataFrame({attack: [0, 1], "wait": [1, 0]}, index=["b", attack])
    plain = [tag for tag, _ in written(bg.NaiveBayesClassifier().fit(X[["n"]], [0, 0, 1, 1]), tmp_path).tags]
    page = written(bg.NaiveBayesClassifier().fit(X, y), tmp_path, words=words, loss=loss)
    assert [tag for tag, _ in page.tags] == plain
    assert "\r" not in page.raw and "\0" not in page.raw  # which a browser would read otherwise, and the hash with it
    options = page.options
    assert options["columns"][0]["name"] == f"{attack}x"
    assert attack in [choice["value"] for choice in options["columns"][0]["choices"]]
    assert options["columns"][1]["unit"] == options["footer"] == options["losses"]["actions"][0] == attack
    assert page.text["h1"] == re.sub(r"[\0\r\n]+", " ", attack)


def test_words_losses_and_costs_reach_the_page(birds, tmp_path):
    (tmp_path / "bird.png").write_bytes(b"\x89PNG\r\n\x1a\n and more")
    (tmp_path / "words.toml").write_text(
        """
        title = "Welcher Pinguin?"
        language = "de"
        order = ["sex", "tagged"]
        columns.sex.name = "Geschlecht"
        columns.sex.categories = { female = "weiblich" }
        classes.Gentoo = { name = "Eselspinguin", picture = "bird.png" }
        sentences = { know = "Was bekannt ist", yes = "ja" }
        """
    )
    loss = pd.DataFrame({"ring": [0, 2, 2], "leave": [1, 0, 0]}, index=["Gentoo", "Adelie", "Chinstrap"])
    page = written(birds, tmp_path, words=tmp_path / "words.toml", loss=loss, cost={"sex": 0.5})
    told = page.options
    assert page.text["title"] == page.text["h1"] == "Welcher Pinguin?"
    assert page.tags[0] == ("html", {"lang": "de"})
    assert [column["label"] for column in told["columns"]] == ["Geschlecht", "tagged", "island", "bill length mm"]
    assert told["columns"][0]["choices"] == [{"value": "female", "name": "weiblich"}, {"value": "male", "name": "male"}]
    assert [choice["name"] for choice in told["columns"][1]["choices"]] == ["no", "ja"]
    assert told["columns"][3]["range"][0] < 35 < 57 < told["columns"][3]["range"][1]
    assert [one["name"] for one in told["classes"]] == ["Adelie", "Chinstrap", "Eselspinguin"]
    assert base64.b64decode(told["classes"][2]["picture"].partition(",")[2]).startswith(b"\x89PNG")
    assert told["losses"] == {"loss": [[2, 0], [2, 0], [0, 1]], "actions": ["ring", "leave"]}
    assert dict(told["costs"]) == {"island": 0, "bill_length_mm": 0, "sex": 0.5, "tagged": 0}
    assert told["sentences"]["know"] == "Was bekannt ist" and told["sentences"]["answer"] == "Answer"


def test_the_template_of_words_says_what_the_page_says_without(birds, tmp_path):
    (tmp_path / "words.toml").write_text(words_template(birds), encoding="utf-8")
    assert written(birds, tmp_path, words=tmp_path / "words.toml").raw == written(birds, tmp_path).raw
    X = pd.DataFrame({'"quoted".\\ \x7f\t': [0.0, 1, 2, 3]})
    odd = bg.NaiveBayesClassifier().fit(X, ["a]", "a]", "=", "="])
    (tmp_path / "words.toml").write_text(words_template(odd), encoding="utf-8")
    assert written(odd, tmp_path, words=tmp_path / "words.toml").raw == written(odd, tmp_path).raw


@pytest.mark.parametrize(
    ("words", "line", "problem"),
    [
        ('title = "a"\n[columns.bill]\nname = "b"', 2, "there is no column 'bill'; there are: island, bill_length_mm"),
        ('[columns.sex.categories]\nmale = "m"\nhen = "f"', 3, "there is no category 'hen'; there are: female, male"),
        ('[columns.island]\n\nunit = 3', 3, "expected text in quotes, got 3"),
        ('title = "a unit"\n[columns.island]\nunit = "x"\n[columns.sex]\nunit = 3', 5, "expected text in quotes"),
        ('[columns]\nisland = "x"', 2, "expected a table, got 'x'"),
        ('# birds\nclasses."Gento" = { name = "x" }', 2, "there is no class 'Gento'; there are: Adelie,"),
        ('titel = "a"', 1, "there is no word 'titel'"),
        ('[sentences]\nknow = """\nWhat\n"""\nknown = "x"', 5, "there is no sentence 'known'"),
        ('[sentences]\nnow = "{percent} {class}"', 2, "{class} stands for nothing; known: name, percent"),
        ('order = [\n  "sex",\n  "age",\n]', 1, "'age' is no column; there are: island"),
        ('order = ["sex", "sex"]', 1, "'sex' stands there twice"),
        ('language = "deutsch!"', 1, "expected the code of a language"),
        ('[classes.Gentoo]\npicture = "none.png"', 2, "the picture 'none.png' cannot be read: No such file"),
        ('[classes.Gentoo]\npicture = "words.toml"', 2, "'words.toml' is no picture of the kinds ['image/png'"),
        ("title = a", 1, "this is no TOML"),
    ],
)  # fmt: skip
def test_wrong_words_are_told_by_line_and_nothing_is_written(words, line, problem, birds, tmp_path):
    (tmp_path / "words.toml").write_text(words)
    with pytest.raises(ValueError, match=re.escape(problem)) as refused:
        written(birds, tmp_path, words=tmp_path / "words.toml")
    assert f"line {line}" in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["words.toml"]


def test_other_wrong_arguments_write_nothing(birds, tmp_path):
    for options, problem in [
        ({"words": {"columns": {"age": {}}}}, "words, columns.age: there is no column 'age'"),
        ({"words": tmp_path / "none.toml"}, "No such file"),
        ({"loss": [[0, 1], [1, 0]]}, "loss"),
        ({"loss": pd.DataFrame(np.eye(3), index=list("abc"))}, "loss must have one row for each of the classes"),
        ({"loss": np.ones((3, 2))}, "loss must name its 2 actions"),
        ({"cost": {"age": 1}}, "cost names the columns ['age']"),
        ({"cost": -1}, "cost must be finite and >= 0"),
    ]:
        with pytest.raises((ValueError, OSError), match=re.escape(problem)):
            written(birds, tmp_path, **options)
    with pytest.raises(ValueError, match="more than 5 MB in all"):
        (tmp_path / "large.png").write_bytes(b"\x89PNG\r\n" + bytes(5_000_000))
        written(birds, tmp_path, words={"classes": {"Adelie": {"picture": str(tmp_path / "large.png")}}})
    with pytest.raises(FileNotFoundError):
        to_page(birds, tmp_path / "none" / "calculator.html")
    assert not list(tmp_path.glob("*.html"))


def test_the_command_writes_a_page_and_words_to_fill_in(birds, tmp_path):
    birds.save(tmp_path / "m.safetensors")
    (tmp_path / "loss.csv").write_text("class;ring;leave\nAdelie;0;1,5\nGentoo;1;0\nChinstrap;1;0\n")
    (tmp_path / "costs.csv").write_text("column,cost\nsex,.5\n")
    given = (tmp_path / "m.safetensors", "--output", tmp_path / "new" / "page.html")
    code, out, _ = run(*given, "--words-template", tmp_path / "words.toml", command="page")
    assert code == 0 and "--words" in out and not (tmp_path / "new").exists()
    more = ("--words", tmp_path / "words.toml", "--loss", tmp_path / "loss.csv", "--cost", tmp_path / "costs.csv")
    code, out, err = run(*given, *more, command="page")
    assert (code, err) == (0, "") and "page.html" in out and "kB" in out
    options = Page(tmp_path / "new" / "page.html").options
    assert options["losses"] == {"loss": [[0, 1.5], [1, 0], [1, 0]], "actions": ["ring", "leave"]}
    assert dict(options["costs"])["sex"] == 0.5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("column,cost\nsex,.5\nage,1\n", "costs.csv, line 3: the model has no column 'age'; it has ['island'"),
        ("column,cost\nsex,much\n", "costs.csv, line 2: the cost of sex is no number >= 0; its first line"),
        ("column,cost\nsex,-1\n", "costs.csv, line 2: the cost of sex is no number >= 0"),
        ("column,cost\nsex,1\nsex,2\n", "costs.csv: sex is there twice"),
        ("column\nsex\n", "costs.csv: expected two columns, got 1 with 1 lines"),
    ],
)
def test_costs_that_cannot_be_read_are_refused(text, problem, birds, tmp_path):
    birds.save(tmp_path / "m.safetensors")
    (tmp_path / "costs.csv").write_text(text)
    given = (tmp_path / "m.safetensors", "--cost", tmp_path / "costs.csv", "--output", tmp_path / "page.html")
    code, _, err = run(*given, command="page")
    assert code == 2 and problem in err and not (tmp_path / "page.html").exists()


def test_what_cannot_be_a_page_is_refused_by_name(tmp_path):
    X = pd.DataFrame({"dna": ["ab", "ba", "bb", "aa"], "n": [0.0, 1, 2, 3]})
    chain = bg.NaiveBayesClassifier({"dna": bg.models.MarkovChain("ab")}).fit(X, ["a", "a", "b", "b"])
    bg.LinearRegressor().fit(X[["n"]], [0.0, 1, 2, 4]).save(tmp_path / "line.safetensors")
    chain.save(tmp_path / "chain.safetensors")
    for name, problem in {"line": "LinearRegressor has no classes", "chain": "['dna'] cannot be exported"}.items():
        given = (tmp_path / f"{name}.safetensors", "--output", tmp_path / "new" / "page.html")
        code, _, err = run(*given, command="page")
        assert code == 2 and problem in err
    assert "leave them out by --drop" in err and not list(tmp_path.rglob("*.html"))


def test_an_output_never_replaces_an_input(birds, tmp_path):
    birds.save(tmp_path / "m.html")
    code, _, err = run(tmp_path / "m.html", "--output", tmp_path / "m.html", command="page")
    assert code == 2 and "it would be lost" in err
    assert bg.load(tmp_path / "m.html").classes_.size == 3


def hospital(rows=80):
    """Columns of many kinds, and the classes of the rows, a Series with a name."""
    rng = np.random.default_rng(0)
    sick = rng.random(rows) < 0.5
    X = pd.DataFrame(
        {
            "crp": rng.gamma(1 + sick).round(3),
            "excess": rng.normal(sick, 1).round(2),
            "beds": rng.poisson(2 + sick),
            "case_id": rng.permutation(rows * 3)[:rows],
            "admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), unit="D"),
            "date_of_birth": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 9000, rows), unit="D"),
            "smoker": rng.choice(["Ja", "ja", "j", "nein"], rows),
            "blood": rng.choice(["A", "AB", "B", "0"], rows),
            "note": [f"a note of case {i % 40} in some words of its own" for i in range(rows)],
        }
    )
    return X, pd.Series(np.where(sick, "ja", "nein"), name="Sepsis")


def test_the_page_asks_what_a_person_knows_of_a_case(tmp_path):
    X, y = hospital()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = bg.NaiveBayesClassifier({"admitted": "date", "date_of_birth": "date"}).fit(X, y)
    with pytest.warns(
        UserWarning, match="'smoker': 'Ja' and 'ja', 'j' and 'Ja', 'j' and 'ja' may be one level"
    ) as told:
        page = written(model, tmp_path)
    assert len(told) == 1  # blood groups are apart
    assert page.text["h1"] == "Sepsis: ja or nein?"
    columns = {column["name"]: column for column in page.options["columns"]}
    assert [name for name in columns if not columns[name]["asked"]] == ["case_id", "admitted", "note"]
    assert columns["crp"]["range"][0] == columns["beds"]["range"][0] == 0 and columns["excess"]["range"][0] < 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        page = written(model, tmp_path, words={"order": ["admitted"], "title": "x"})
    assert page.options["columns"][0]["asked"] and page.text["h1"] == "x"  # the author wants it
    pieces = bg.NaiveBayesClassifier().partial_fit(X[["crp"]], y, classes=["ja", "nein"])
    pieces.partial_fit(-X[["crp"]], y)
    assert written(pieces, tmp_path).options["columns"][0]["range"][0] < 0
    line = bg.LogisticClassifier(inference="map").fit(X[["crp", "case_id"]], y)
    with pytest.warns(UserWarning, match="has to ask for case_id, which seem to tell which row it is: fit without"):
        assert all(column["asked"] for column in written(line, tmp_path).options["columns"])


def test_every_way_of_fitting_a_column_of_a_table_names_the_heading(tmp_path):
    X, y = hospital()
    X, file = X[["crp", "excess"]], tmp_path / "t.csv"
    X.assign(Sepsis=y).to_csv(file, index=False)
    run(file, "--target", "Sepsis", "--model", "nb", "--output", tmp_path / "m.safetensors", command="fit")
    models = {
        "naive Bayes": bg.NaiveBayesClassifier().fit(X, y),
        "discriminant": bg.GaussianDiscriminantClassifier().fit(X, y),
        "average": bg.AveragedClassifier(members=["gaussian"]).fit(X, y),
        "logistic": bg.LogisticClassifier(inference="map").fit(X, y),
        "batches": bg.NaiveBayesClassifier().fit_batches(file, "Sepsis", progress=False),
        "command": bg.load(tmp_path / "m.safetensors"),
    }
    for name, model in models.items():
        assert written(model, tmp_path).text["h1"] == "Sepsis: ja or nein?", name
    assert written(bg.NaiveBayesClassifier().fit(X, y.to_numpy()), tmp_path).text["h1"] == "ja or nein?"


def test_a_value_too_far_out_is_told_in_the_words_of_the_page(paged, few_members):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.5, "a", "b")
    X = pd.DataFrame({"weight": rng.normal(70, 9, 60) + 20 * (y == "a"), "dose": rng.gamma(2, 3, 60)})
    said = {"too_far": "{column}: {value} ist zu weit.", "too_small": "{column} ist nicht größer als {value}."}
    words = {"language": "de", "sentences": said}
    page = paged(bg.NaiveBayesClassifier({"dose": "log"}).fit(X, y), words=words)
    assert page.typed(1, "-3")[0] == "dose ist nicht größer als 0."
    assert page.pasted("weight\tdose\n70\t-3\n")[1][1][-1] == "dose ist nicht größer als 0."
    page = paged(bg.AveragedClassifier().fit(X, y), words=words)
    assert page.typed(0, "1e300")[2] == "weight: 1e+300 ist zu weit."
