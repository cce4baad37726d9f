"""The package grows by an issue alone: budgets of docs/design.md, under which every file is; subjects of commits."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "bayesgen"
SUFFIXES = {".py", ".js", ".css", ".html"}
TOGETHER = 53_300  # lines of all budgets: an issue changes this number
SINCE = "79c0c83"  # the last commit whose subject may be longer than a line of `git log`


def budgets():
    """Yield feature, files and budget of each row of the table under "Budgets"; the row "free" has no files."""
    section = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").split("\n## Budgets\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    for row in rows:
        feature, _, files, budget = row.removeprefix("| ").removesuffix(" |").split(" | ")
        yield feature, [] if feature == "free" else list(files_of(files)), int(budget.replace(",", ""))


def files_of(text):
    """Yield the files that a cell names: rooms by "; ", the files of a room by ", ", and * for all others of it."""
    for room in text.split("; "):
        folder, _, names = room.rpartition("/")
        for name in names.split(", "):
            found = sorted((PACKAGE / folder).glob(name if "*" in name else f"{name}.*"))
            found = [path for path in found if path.suffix in SUFFIXES]
            assert found, f"there is no file {folder}/{name}"
            yield from found


def lines(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_feature_is_over_its_budget():
    over = {feature: (sum(map(lines, files)), budget) for feature, files, budget in budgets() if feature != "free"}
    assert not {feature: both for feature, both in over.items() if both[0] > both[1]}


def test_budgets_add_up_to_what_the_package_may_have():
    given = {feature: budget for feature, _, budget in budgets()}
    assert sum(given.values()) == TOGETHER, f"{sum(given.values()):,}: move lines between a row and the row 'free'"
    assert given["free"] >= 0


def test_every_file_belongs_to_one_feature():
    named = [path for _, files, _ in budgets() for path in files]
    assert len(named) == len(set(named))
    assert {path for path in PACKAGE.rglob("*") if path.suffix in SUFFIXES} == set(named)


def test_subjects_of_commits_are_a_line_of_the_log():
    """A shallow clone or an archive has no history to check."""

    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, encoding="utf-8")

    try:
        known = git("merge-base", "--is-ancestor", SINCE, "HEAD").returncode == 0
    except FileNotFoundError:
        known = False
    if not known:
        pytest.skip(f"there is no history since {SINCE}")
    subjects = git("log", "--format=%s", f"{SINCE}..HEAD").stdout.splitlines()
    assert not [subject for subject in subjects if len(subject) > 72]
