"""The package, CITATION.cff and the changelog have one version, and the pages that README names exist."""

import re
import tomllib
from pathlib import Path

import pytest

import bayesgen as bg
from bayesgen import plot

ROOT = Path(__file__).parent.parent
RELEASES = re.findall(r"^## \[(.*?)\](?: - (.*))?$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
LINKING = ("README.md", "docs/contents.md")


def test_the_changelog_and_the_citation_have_the_version_of_the_package():
    (unreleased, *_), *_ = RELEASES
    dated = [release for release in RELEASES if release[0] != "Unreleased"]
    assert unreleased in ("Unreleased", bg.__version__)
    assert dated[0][0] == bg.__version__
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {bg.__version__}\ndate-released: {dated[0][1]}\n" in cited


def test_the_changelog_goes_back_from_release_to_release():
    dated = [release for release in RELEASES if release[0] != "Unreleased"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for _, date in dated)
    order = [(tuple(map(int, version.split("."))), date) for version, date in dated]
    assert order == sorted(order, reverse=True) and len({version for version, _ in order}) == len(order)


def test_no_file_of_the_package_is_in_the_wheel_twice():
    """The wheel has all of bayesgen/, and the files of licences again beside it; check-wheel-contents refuses both."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["license-files"]
    licences = [path for pattern in patterns for path in ROOT.glob(pattern)]
    assert licences and not [path for path in licences if path.is_relative_to(ROOT / "bayesgen")]
    tables = (ROOT / "bayesgen" / "data").glob("*.csv")
    assert not [path.name for path in tables if "Licence" not in path.with_suffix(".txt").read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", LINKING)
def test_links_lead_to_pages(page):
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert len(links) > 2
    assert not [link for link in links if not ((ROOT / page).parent / link).is_file()]


def test_readme_is_short_and_says_for_whom_how_to_cite_and_where_to_ask_before_the_first_command():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    before = text.split("<!-- main command -->")[0]
    assert all(word in before for word in ("**For**", "**Not for**", "LICENSE", "CITATION.cff", "To ask"))


def test_the_gallery_draws_every_public_picture():
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    drawn = set(re.findall(r"\bbg\.plot\.(\w+)\(", gallery))
    assert drawn == set(plot.__all__)


def test_what_is_there_leads_to_every_how_to_page():
    linked = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("docs/contents.md", "docs/howto.md"))
    assert not [page.stem for page in (ROOT / "docs" / "howto").glob("*.md") if f"howto/{page.stem}" not in linked]


def test_the_recipe_for_conda_needs_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    newer = [line.split(";")[0].strip() for line in project["dependencies"] if "python_version <" not in line]
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    run = recipe.split("  run:\n")[1].split("\ntests:")[0]
    needed = [line.strip().removeprefix("- ").replace(" ", "") for line in run.splitlines() if line.strip()]
    assert needed[1:] == [line.replace("matplotlib>", "matplotlib-base>") for line in newer]
    assert f'version: "{bg.__version__}"' in recipe
