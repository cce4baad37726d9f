r"""Labels that are shares of the classes: of raters, of votes, or another model's probabilities.

A row that is worth w_i votes, a share P_ik of them for class k, counts w_i P_ik times in class k, as a row of unknown
class does under its expected label (`bayesgen.models.unknown_labels`):

.. math:: \prod_i \prod_k p(x_i, k)^{w_i P_{ik}}

With P = votes/w this is the likelihood of one row a vote, to the last digit. It is a weighted likelihood and no
probability of the data: there is no evidence of it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.core.errors import Argument, InputError, counted, listed
from bayesgen.core.names import names_along, places
from bayesgen.numerics.checks import check_weight

_OFF = 1e-6  # by which the shares of a row may miss 1


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the classes, (n, K), in the place of one label a row, with the names of their columns."""

    values: np.ndarray
    names: list

    @property
    def shape(self) -> tuple[int]:
        """Number of rows."""
        return (len(self.values),)

    def __len__(self):
        return len(self.values)

    def copy(self) -> "Shares":
        """Return the shares themselves, which are never the user's array."""
        return self

    def __getitem__(self, rows):
        return Shares(self.values[rows], self.names)

    def among(self, classes) -> np.ndarray:
        """Return the shares (n, K) with columns in the order of the classes, or raise where these are others."""
        return self.values[:, places("y", self.names, list(classes), "one column of shares for each of the classes")]


def labels_or_shares(y, classes=None, default: Any = None, argument: str = "classes=") -> Any:
    """Return shares (n, K) with the names of their columns; one label a row stays as it is.

    The classes of the columns are those of a DataFrame, else ``classes``, else ``default``; the error names the
    ``argument`` that says them.
    """
    shape: Any = getattr(y, "shape", ())
    if isinstance(y, list | tuple) and y and isinstance(y[0], list | tuple | np.ndarray):
        shape = np.shape(y[0]) and (len(y), len(y[0]))
    if isinstance(y, Shares) or len(shape) != 2 or shape[1] < 2:
        return y
    names = (names_along(y)[1:] or (None,))[0]
    if names is None and (names := default if classes is None else classes) is None:
        cure = f"say which class each column is: by {argument}, or by the columns of a DataFrame"
        raise ValueError(f"y should be a 1d array of labels; of shares of the classes, (rows, classes), {cure}")
    names, values = np.asarray(names).tolist(), np.asarray(y)
    if len(names) != shape[1] or len(set(names)) < len(names):
        raise ValueError(f"classes must name each of the {shape[1]} columns of shares once, got {listed(names)}")
    if values.dtype.kind not in "biuf":
        raise TypeError(f"y must hold shares, numbers that sum to 1 in each row; got dtype {values.dtype}")
    values = values.astype(float)
    wrong = np.flatnonzero(~((values >= 0).all(1) & (np.abs(values.sum(1) - 1) <= _OFF)))
    if wrong.size:
        text = f" must hold shares >= 0 that sum to 1 in each row; not so in {counted(wrong.size, 'row')}, first row "
        text += f"{wrong[0]}: {listed(values[wrong[0]])}. Of counts give counts divided by their sum"
        weight = Argument("label_weight", None, ", and the sum as label_weight=")
        raise InputError(Argument("y", None, "y"), text, weight, row=int(wrong[0]))
    return Shares(values, names)


def vote_weight(y, sample_weight, label_weight):
    """Return the weight of each row times the votes that its shares are worth; None where each counts once."""
    if label_weight is None:
        return sample_weight
    if not isinstance(y, Shares):
        raise ValueError("label_weight is of shares of the classes, (rows, classes); of one label a row there are none")
    votes = np.asarray(label_weight)
    check_weight(votes := np.full(y.shape, votes) if votes.ndim == 0 else votes, len(y), "label_weight")
    check_weight(sample_weight, len(y), "sample_weight")
    return votes if sample_weight is None else votes * np.asarray(sample_weight, float)


def check_all_shared(codes, classes, weight) -> None:
    """Raise where no row has a share of a class, of shares (n, K)."""
    total = codes.sum(0) if weight is None else weight @ codes
    if (none := np.flatnonzero(total <= 0)).size:
        raise ValueError(f"no row has a share of the classes {listed(np.asarray(classes)[none])}: leave them out")


def stacked(codes, weight) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return row, class and weight of each pair of a row and a class of which it has a share.

    Where each row has one class, the rows are all of them, as a slice.
    """
    if codes.ndim == 1:
        return slice(None), codes, weight
    rows, classes = np.nonzero(codes)
    return rows, classes, codes[rows, classes] * (1.0 if weight is None else weight[rows])


def most(codes) -> np.ndarray:
    """Return the class of each row, (n,), from codes or from shares (n, K): the one of the largest share."""
    return codes if codes.ndim == 1 else codes.argmax(1)
