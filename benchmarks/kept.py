"""Files of measurements, a line each: no line is measured twice, so that a long run can be broken off."""

import os
from pathlib import Path

import pandas as pd


class Kept:
    """A CSV file whose lines have a key.

    Attributes
    ----------
    path : Path
        Where it is, or will be.
    keys : list of str
        Columns that say which measurement a line is; read as text.
    columns : list of str
        All columns.
    """

    def __init__(self, path: Path, keys: list[str], columns: list[str]):
        self.path, self.keys, self.columns = path, keys, columns
        self._done = self._found()

    def __contains__(self, key: dict) -> bool:
        return tuple(str(key[name]) for name in self.keys) in self._done

    def add(self, key: dict, result: dict) -> None:
        """Write a line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        row = pd.DataFrame([key | result], columns=self.columns)
        row.to_csv(self.path, mode="a", header=not self.path.exists(), index=False, float_format="%.5g")
        self._done.add(tuple(str(key[name]) for name in self.keys))

    def read(self) -> pd.DataFrame:
        """Every line, a row each; of lines with one key the last."""
        if not self.path.exists():
            return pd.DataFrame(columns=self.columns)
        frame = pd.read_csv(self.path, dtype=dict.fromkeys(self.keys, str))
        return frame.drop_duplicates(self.keys, keep="last").reset_index(drop=True)

    def forget(self, models: list[str]) -> None:
        """Take out the lines of some models, so that they are measured anew."""
        frame = self.read()
        beside = self.path.with_suffix(".new")
        frame[~frame["model"].isin(models)].to_csv(beside, index=False, float_format="%.5g")
        os.replace(beside, self.path)  # a run that is broken off loses no line
        self._done = self._found()

    def _found(self) -> set:
        return {tuple(key) for key in self.read()[self.keys].to_numpy()}
