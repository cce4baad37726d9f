"""Two small open data sets, shipped with the package.

========  ====  ================================================================
name      rows  task
========  ====  ================================================================
penguins   344  a penguin's species from its measurements; some values missing
anes96     944  an American's vote in 1996, Clinton (0) or Dole (1), from a survey
========  ====  ================================================================

Beside each ``<name>.csv`` a ``<name>.txt`` gives licence, source, citation and columns.
"""

from pathlib import Path

import pandas as pd

__all__ = ["load", "names", "path"]

_FOLDER = Path(__file__).parent  # the package is installed as plain files


def names() -> list[str]:
    """Return the names of the data sets.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> from bayesgen import data
    >>> data.names()
    ['anes96', 'penguins']
    """
    return sorted(file.stem for file in _FOLDER.glob("*.csv"))


def path(name: str) -> Path:
    """Return the path of the CSV file of a data set.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    pathlib.Path
        The CSV file; its description has the same name with the suffix ``.txt``.

    Raises
    ------
    ValueError
        If there is no data set of that name.

    Examples
    --------
    >>> from bayesgen import data
    >>> data.path("penguins").name
    'penguins.csv'
    >>> print(data.path("anes96").with_suffix(".txt").read_text().splitlines()[0])
    anes96: 944 voters of the American National Election Study of 1996, Clinton or Dole
    """
    if name not in names():
        raise ValueError(f"no data set named {name!r}; there are: {', '.join(names())}")
    return _FOLDER / f"{name}.csv"


def load(name: str) -> pd.DataFrame:
    """Read a data set as a pandas table.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    pandas.DataFrame
        Columns as pandas reads them: numbers, or strings; a missing value is NaN.

    Raises
    ------
    ValueError
        If there is no data set of that name.

    Examples
    --------
    >>> from bayesgen import data
    >>> penguins = data.load("penguins")
    >>> penguins.shape
    (344, 8)
    >>> list(penguins.columns[2:6])
    ['bill_length_mm', 'bill_depth_mm', 'flipper_length_mm', 'body_mass_g']
    >>> int(data.load("anes96")["vote"].sum())  # Dole
    393
    """
    return pd.read_csv(path(name))
