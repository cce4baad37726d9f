"""Digests of the batches that a watch took up: rows that come again in their order are known by them."""

import hashlib

import numpy as np
import pandas as pd
from scipy.special import gammaln

from bayesgen.core.errors import Argument, InputError, counted

_MOST = 4096  # digests that are kept
_CHANCE = np.log(1e6)  # log of the number of orders from which a batch that came before is no chance


def begun(known: np.ndarray) -> np.ndarray:
    """Return the digest of known rows as numbers (n, parts), none where there are none."""
    return np.array([_digest(known)] if len(known) else [], np.uint64)


def with_another(batches: np.ndarray, values: np.ndarray, again: bool | None) -> np.ndarray:
    """Return the digests with that of another batch (n, parts); raise InputError where it came before.

    ``again`` True takes it all the same; None refuses it only where its order is one of a million.
    """
    digest = _digest(values)
    if again is not True and digest in batches and (again is False or _log_orders(values) >= _CHANCE):
        raise InputError(
            f"these rows ({counted(len(values), 'row')}) came before, in this order, and count already; ",
            Argument("again", True),
            " takes them once more",
        )
    return np.append(batches, digest)[-_MOST:]


def _digest(values: np.ndarray) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(values.tobytes(), digest_size=8).digest(), "big"))


def _log_orders(values: np.ndarray) -> float:
    """Return the log of the number of orders of rows (n, parts): n! over the factorials of how often each came."""
    equal = pd.Series([row.tobytes() for row in values]).value_counts().to_numpy()
    return gammaln(len(values) + 1) - gammaln(equal + 1).sum()
