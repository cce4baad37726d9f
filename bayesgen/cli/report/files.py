"""The files that `bayesgen compare` writes into a folder."""

from pathlib import Path

import numpy as np
import pandas as pd

from bayesgen.cli.formats import apart
from bayesgen.cli.report.account import Account
from bayesgen.cli.report.page import page
from bayesgen.cli.report.pictures import pictures
from bayesgen.cli.report.terminal import say
from bayesgen.files import disk

FILES = (
    "report.html",
    "calibration.png",
    "probabilities.png",
    "models.png",
    "columns.png",
    "time.png",
    "predictions.csv",
    "posterior.nc",
)


def write(out, folder: Path, account: Account, whole) -> None:
    """Write the page, its pictures, the predictions, and the posterior of all rows (of ``whole``): all or nothing.

    Files of an earlier run that this one does not write are removed; where anything fails they all stay.
    """
    drawn = pictures(account.result, account.models, account.worth)
    contents = {f"{name}.png": picture.png for name, picture in drawn.items()}
    contents["report.html"] = page(account, drawn).encode()
    contents["predictions.csv"] = predictions(account).to_csv(index=False).encode()
    try:
        tree = whole.to_arviz()
    except ValueError as error:
        say(out, f"posterior.nc is left out: {error}")
    else:  # made in memory: on a full disk HDF5 ends the whole process
        contents["posterior.nc"] = bytes(tree.to_netcdf(engine="h5netcdf"))
    disk.write_together({folder / name: contents.get(name) for name in FILES})
    say(out, f"Written to {folder}: {', '.join(name for name in FILES if name in contents)}")


def predictions(account: Account):
    """Return a DataFrame with number, names, fold, truth and the predictions of each inference and model, by row."""
    prepared, result = account.prepared, account.result
    columns = {"row": prepared.rows, "fold": result.fold, "truth": prepared.y}
    others = {} if account.models is None else account.models.probability  # of the same folds
    for name, probability in (result.probability | others).items():
        name, best = name.replace(" ", "_"), result.classes[probability.argmax(1)].astype(object)
        best[~np.isfinite(probability.sum(1))] = None  # of a fold that could not be learned
        columns[f"{name}_class"] = best
        columns |= {f"{name}_p_{c}": p for c, p in zip(result.classes.tolist(), probability.T, strict=True)}
    called = apart(prepared.names, columns)
    found = pd.DataFrame(columns)
    for place, (name, own) in enumerate(called.items(), 1):
        found.insert(place, own, prepared.names[name].to_numpy())
    return found
