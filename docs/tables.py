"""The made-up tables that pages begin with, docs/tables/*.csv, as offices write them: `python docs/tables.py`."""

from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent / "tables"


def clinic(rng):
    """150 patients, some of whom came back within a month: 120 of them with, 30 without the outcome."""
    back = rng.random(150) < 0.35
    table = pd.DataFrame(
        {
            "patient": [f"P{i:04}" for i in range(150)],
            "admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 150), unit="D"),
            "costs": np.exp(rng.normal(6 + back, 1)).round(2),  # skewed
            "visits": rng.poisson(1 + 2 * back),
            "ward": rng.integers(1, 5, 150),  # a code, not a number
            "smoker": np.where(rng.random(150) < 0.1, "?", np.where(rng.random(150) < 0.3 + 0.2 * back, "yes", "no")),
            "outcome": np.where(back, "back", "home"),
        }
    )
    table["admitted"] = table["admitted"].dt.strftime("%d.%m.%Y")
    return table[:120], table[120:].drop(columns="outcome")


def laboratory(rng):
    """150 samples with a decimal comma, points between thousands, percent signs, and values below a limit."""
    late = rng.random(150) < 0.4
    crp = np.exp(rng.normal(late, 1))
    return pd.DataFrame(
        {
            "water": [written(v) + "%" for v in rng.normal(55 + 6 * late, 5)],
            "leucocytes": [written(v) for v in rng.normal(7000 + 1500 * late, 1500)],
            "crp": ["<0,5" if v < 0.5 else written(v) for v in crp],
            "late": np.where(late, "yes", "no"),
        }
    )


def written(value):
    """Write a number with a decimal comma and points between thousands."""
    return f"{value:,.1f}".translate(str.maketrans(",.", ".,"))


if __name__ == "__main__":
    stream = np.random.default_rng(1)
    known, new = clinic(stream)
    for name, frame in {"clinic": known, "new": new, "laboratory": laboratory(stream)}.items():
        frame.to_csv(HERE / f"{name}.csv", index=False, sep=";")
