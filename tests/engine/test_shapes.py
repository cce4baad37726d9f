"""Shapes that fields of records say, and the walk that checks them."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from refusals import refuses

from bayesgen.core.program import Record
from bayesgen.core.shapes import check_shapes, require_fit, shaped


@dataclass(frozen=True, eq=False)
class Line(Record):
    """A line and its covariance, or the diagonal of it."""

    slope: np.ndarray = field(metadata=shaped("1+columns"))
    covariance: np.ndarray = field(metadata=shaped("columns or columns columns", least=0))


@dataclass(frozen=True, eq=False)
class Lines(Record):
    """Lines of groups, each of one class."""

    owner: np.ndarray = field(metadata=shaped("groups", places="classes"))
    share: np.ndarray = field(metadata=shaped("groups", positive=True))
    kinds: np.ndarray | None = field(metadata=shaped("kinds", same="sizes of kinds"))
    lines: tuple[Line, ...]

    def fits(self, sizes):
        require_fit(len(self.lines) == sizes["groups"], "other lines than groups")
        return sizes


def made(**changed):
    line = Line(np.zeros(3), np.ones((2, 2)))
    parts = {"owner": np.array([0, 1]), "share": np.ones(2), "kinds": np.array([4, 5]), "lines": (line, line)}
    return Lines(**parts | changed)


SIZES = {"columns": 2, "classes": 2, "sizes of kinds": (4, 5)}


@pytest.mark.parametrize("right", [made(), made(kinds=None), made(lines=(Line(np.ones(3), np.ones(2)),) * 2)])
def test_what_fits_is_taken(right):
    sizes = dict(SIZES)
    check_shapes(right, sizes)
    assert sizes == SIZES


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (made(owner=np.array([0, 2])), r"Lines\.owner are no places of 2 classes"),
        (made(owner=np.array([0.0, 1.0])), r"Lines\.owner are not whole"),
        (made(share=np.ones(3)), r"Lines\.share are not finite numbers of the shape \(groups\), groups = 2"),
        (made(share=np.array([1.0, 0.0])), r"Lines\.share have entries that are too small"),
        (made(share=np.array([1.0, np.inf])), r"Lines\.share are not finite"),
        (made(share="none"), r"Lines\.share are not finite"),
        (made(kinds=np.array([5, 4])), r"Lines\.kinds are not \(4, 5\)"),
        (made(lines=()), "other lines than groups"),
        (made(lines=(Line(np.zeros(2), np.ones(2)),) * 2), r"Line\.slope .* \(1\+columns\)"),
        (made(lines=(Line(np.zeros(3), np.ones((2, 3))),) * 2), r"Line\.covariance .*, columns = 2"),
        (made(lines=(Line(np.zeros(3), -np.ones(2)),) * 2), r"Line\.covariance have entries"),
    ],
)
def test_what_does_not_fit_is_named(wrong, words):
    refuses(lambda: check_shapes(wrong, SIZES), f"its parts do not fit each other: .*{words}")
