"""The files that `bayesgen compare` writes into a folder."""

from pathlib import Path

import numpy as np

from bayesgen.report.account import Account
from bayesgen.report.page import page
from bayesgen.report.pictures import pictures
from bayesgen.report.terminal import say

FILES = (
    "report.html",
    "calibration.png",
    "probabilities.png",
    "models.png",
    "columns.png",
    "predictions.csv",
    "posterior.nc",
)


def write(out, folder: Path, account: Account, whole) -> None:
    """Write the page, its pictures, the predictions, and the posterior of all rows, that of ``whole``."""
    for file in FILES:
        (folder / file).unlink(missing_ok=True)  # of an earlier run
    predictions(account).to_csv(folder / "predictions.csv", index=False)
    drawn = pictures(account.result, account.models, account.worth)
    for name, picture in drawn.items():
        (folder / f"{name}.png").write_bytes(picture.png)
    (folder / "report.html").write_text(page(account, drawn), encoding="utf-8")
    try:
        whole.to_arviz().to_netcdf(folder / "posterior.nc", engine="h5netcdf")
    except ValueError as error:
        say(out, f"posterior.nc is left out: {error}")
    say(out, f"Written to {folder}: {', '.join(file for file in FILES if (folder / file).exists())}")


def predictions(account: Account):
    """A row for each row used: its number, names, fold, truth, and what each inference and model said, a DataFrame."""
    import pandas as pd

    prepared, result = account.prepared, account.result
    columns = {"row": prepared.rows, **prepared.names, "fold": result.fold, "truth": prepared.y}
    others = {} if account.models is None else account.models.probability  # of the same folds
    for name, probability in (result.probability | others).items():
        name, best = name.replace(" ", "_"), result.classes[probability.argmax(1)].astype(object)
        best[~np.isfinite(probability.sum(1))] = None  # of a fold that could not be learned
        columns[f"{name}_class"] = best
        columns |= {f"{name}_p_{c}": p for c, p in zip(result.classes.tolist(), probability.T, strict=True)}
    return pd.DataFrame(columns)
