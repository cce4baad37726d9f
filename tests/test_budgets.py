"""Every file of the package belongs to one feature, and no feature has more lines than its budget in docs/design.md."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "bayesgen"
SUFFIXES = {".py", ".js", ".css", ".html"}


def budgets():
    """Yield feature, files and budget of each row of the table under "Budgets"."""
    section = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").split("\n## Budgets\n")[1].split("\n## ")[0]
    for feature, _, files, budget in re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| ([\d,]+) \|$", section, re.MULTILINE):
        yield feature, list(files_of(files)), int(budget.replace(",", ""))


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
    over = {feature: (sum(map(lines, files)), budget) for feature, files, budget in budgets()}
    assert not {feature: both for feature, both in over.items() if both[0] > both[1]}


def test_every_file_belongs_to_one_feature():
    named = [path for _, files, _ in budgets() for path in files]
    assert len(named) == len(set(named))
    assert {path for path in PACKAGE.rglob("*") if path.suffix in SUFFIXES} == set(named)
