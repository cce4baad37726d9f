"""A column of each kind, as tables bring them, and two classes."""

import numpy as np
import pandas as pd

RNG = np.random.default_rng(0)
Y = np.arange(60) % 2
LABELS = np.array(["a", "b"])[Y]
DAYS = np.round(20 + 3 * RNG.normal(size=60) + 3 * Y, 3)
BITS = (RNG.random(60) < np.where(Y, 0.7, 0.3)).astype(int)
COUNTS = RNG.poisson(2 + 3 * Y)
KINDS = {
    "number": pd.Series(DAYS),
    "duration": pd.Series(pd.to_timedelta(DAYS, unit="D").round("s")),
    "date": pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(DAYS), unit="D")),
    "bool": pd.Series(BITS.astype(bool)),
    "category": pd.Series(pd.Categorical((BITS + 1).astype(str))),
    "text": pd.Series(np.array(["red", "blue"])[BITS]),
    "count": pd.Series(COUNTS),
}
FAMILIES = {"date": "date", "count": "poisson", "category": "categorical"}
