"""The folder that `bayesgen compare` writes: one page that holds a whole comparison, and files to go on from.

No other file, no script and no network is needed to read the page.
"""

import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd

from bayesgen.cli import formats
from bayesgen.cli.report import words
from bayesgen.cli.report.elements import Html, bullets, document, image, section, tabled, tag
from bayesgen.cli.report.pictures import Picture, pictures
from bayesgen.cli.report.run import Account
from bayesgen.cli.report.terminal import say
from bayesgen.core.errors import named, quoted
from bayesgen.export import program_or_none
from bayesgen.files import disk

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "jax", "numpyro", "arviz-base")
_READING = {
    "Log loss": "the mean of -log of the probability that was given to the true class, in nats: 0 is perfect.",
    "Brier score": "the mean squared distance of the probabilities from the truth, from 0 to 2: 0 is perfect.",
    "Calibration error": "how far, on average, the probability of the predicted class is from how often it is true.",
    "Accuracy": "the fraction of rows whose most probable class is the true one.",
    "Base rate": "the frequencies of the classes alone, for every row: what does not beat it has learned nothing.",
    "Sensitivity": "the fraction of the rows of a class that are predicted to be of it.",
    "Specificity": "the fraction of the rows of the other classes that are not predicted to be of a class.",
    "Negative value": "the fraction of the rows that are not predicted to be of a class and are not of it.",
    "Precision": "the fraction of the rows that are predicted to be of a class and are.",
    "ROC-AUC": "how often a row of a class gets more probability of it than a row of the others: 0.5 is no better than "
    "chance.",
}
_PICTURES = ("calibration.png", "probabilities.png", "models.png", "columns.png", "net_benefit.png", "time.png")
FILES = ("report.html", *_PICTURES, "predictions.csv", "posterior.nc")


def write(out, folder: Path, account: Account, whole) -> None:
    """Write the page, its pictures, the predictions, and the posterior of ``whole``, all rows' model: all or nothing.

    Files of an earlier run that this one does not write are removed; where anything fails they all stay.
    """
    drawn = pictures(account)
    contents = {f"{name}.png": picture.png for name, picture in drawn.items()}
    contents["report.html"] = page(account, drawn, program_or_none(whole)).encode()
    contents["predictions.csv"] = predictions(account).to_csv(index=False).encode()
    try:  # made in memory: on a full disk HDF5 ends the whole process
        if not hasattr(whole, "to_arviz"):
            raise ValueError(f"{account.by_class.name} has no posterior of one model")
        contents["posterior.nc"] = bytes(whole.to_arviz().to_netcdf(engine="h5netcdf"))
    except ImportError:
        pass  # who wants draws as a file installs h5netcdf, as the help of --output says
    except ValueError as error:
        say(out, f"posterior.nc is left out: {error}")
    disk.write_together({folder / name: contents.get(name) for name in FILES})
    say(out, f"Written to {folder}: {', '.join(name for name in FILES if name in contents)}")


def predictions(account: Account):
    """Return a DataFrame with number, names, fold, truth and the predictions of each inference and model, by row."""
    prepared, result = account.prepared, account.result
    columns = {"row": prepared.rows, "fold": result.fold}
    if result.shares is None:
        columns["truth"] = prepared.y
    else:
        columns |= {f"share_{c}": share for c, share in zip(result.classes.tolist(), result.shares.T, strict=True)}
    others = {} if account.models is None else account.models.probability  # of the same folds
    for name, probability in (result.probability | others).items():
        name, best = name.replace(" ", "_"), result.classes[probability.argmax(1)].astype(object)
        best[~np.isfinite(probability.sum(1))] = None  # of a fold that could not be learned
        columns[f"{name}_class"] = best
        columns |= {f"{name}_p_{c}": p for c, p in zip(result.classes.tolist(), probability.T, strict=True)}
    return formats.named(pd.DataFrame(columns), prepared.names, 1)


def page(account: Account, drawn: Mapping[str, Picture], program: str = "") -> str:
    """Return the page of a comparison and its pictures, as HTML, with the program of the model that predicts best."""
    result, models, prepared = account.result, account.models, account.prepared
    model, shown = words.MODELS[account.model], {name: _figure(picture) for name, picture in drawn.items()}
    first, *lines = words.of_table(account.read, account.target, prepared, account.schema)
    parts = section("In short", *(tag("p", text) for text in _in_short(account)))
    parts += section("The data", tag("p", f"{first}."), bullets(lines))
    if models is not None:
        table = tabled("model", words.model_cells(models))
        parts += section("Models", table, bullets(words.of_models(models)), shown["models"])
    by_class = account.by_class
    parts += section(
        "By class",
        tag("p", f"The held-out probabilities of {by_class.name}, each class against all others:"),
        tabled("class", by_class.score_cells()),
        tag("p", by_class.sentence()),
        tabled("class", by_class.action_cells()),
    )
    parts += section("Calibration", tag("p", f"Of {by_class.name}, on held-out rows:"), shown["calibration"])
    if len(by_class.thresholds):
        cells, second = by_class.threshold_cells(), quoted(result.classes.tolist()[1])
        sentence = f"Scores of {by_class.name} where a row is said to be {second} from a probability of {second} on:"
        parts += section("By threshold", tag("p", sentence), tabled("from", cells))
    if account.benefits:
        table = tabled("from", words.benefit_cells(account.benefits))
        parts += section("Net benefit", tag("p", words.of_benefits(account.benefits)), table, shown["net_benefit"])
    if account.order is not None:
        table = tabled("until", words.time_cells(account))
        parts += section("Over time", tag("p", words.of_times(account)), table, shown["time"])
    if "columns" in shown:
        sentence = f"By how much {account.worth.name}, which predicts best, predicts new rows worse without a column:"
        parts += section("What matters", tag("p", sentence), shown["columns"])
    won = models is None or models.best == words.MODELS[account.model]
    beside = "" if won else f" It is not the model that predicts best, which is {by_class.name}."
    parts += section(
        "Inferences",
        tag("p", f"One model, {model}, learned in several ways from the same rows.{beside}"),
        tabled("inference", words.inference_cells(result)),
        bullets(words.of_inferences(result)),
        shown["probabilities"],
    )
    reading = [tag("li", tag("b", term), f": {text}") for term, text in _READING.items()]
    parts += section("How to read the numbers", tag("ul", *reading))
    folded = [tag("details", tag("summary", f"{by_class.name}, in NumPyro"), tag("pre", program))] * bool(program)
    parts += section("Methods, and how to cite", tag("p", _methods(account)), *folded, tag("pre", _citation()))
    versions = (f"{name} {metadata.version(name)}" for name in ("bayesgen", *_PACKAGES))
    installed = f"Python {platform.python_version()}, {', '.join(versions)}"
    parts += section("To repeat it", tag("pre", account.command), tag("p", f"{installed}."))
    if account.save is not None and models is not None:
        parts += section(f"To save {models.best}", tag("pre", account.save))
    return document(f"{named(account.targets)}: class probabilities compared", parts)


def _figure(picture: Picture) -> Html:
    """Return the panels of a picture, of which the first is described for all."""
    images = [image(panel, "" if place else picture.seen) for place, panel in enumerate(picture.parts)]
    return tag("figure", tag("div", *images, **{"class": "panels"}), tag("figcaption", picture.caption))


def _in_short(account: Account) -> list[str]:
    """Return sentences for a reader who reads nothing else."""
    result, models = account.result, account.models
    target, said, base = named(account.targets), [], words.base_rate(result)
    if models is not None:
        table, best = models.table, models.best
        top = table.loc[best]
        said.append(
            f"Of {len(table)} models, {best} predicts {target} best on rows that it had not seen: its log loss is "
            f"{top['log_loss']:.3f} ± {top['standard_error']:.3f} a row, and its most probable class is the true one "
            f"in {top['accuracy']:.1%} of {(result.fold > 0).sum()} rows. The frequencies of the classes alone have "
            f"{base['log_loss']:.3f} and {base['accuracy']:.1%}."
        )
        sure = 2 * table["difference_error"].to_numpy(float)
        close = table["difference"].to_numpy(float) <= sure
        near = [str(name) for name, is_close in zip(table.index, close, strict=True) if is_close and name != best]
        beside = f"Not clearly worse, within two standard errors of the difference: {named(near)}."
        alone = "It is clearly better than all others, by more than two standard errors of the difference."
        said.append(beside if near else alone)
    else:
        names = [name for name in result.probability if result.learned(name).any()]
        losses = ", ".join(f"{result.scores(name).log_loss:.3f} ({name})" for name in names)
        said.append(f"The log loss of {words.MODELS[account.model]} on rows that it had not seen is {losses} a row.")
    said.extend(words.of_columns(account.worth))
    return said


def _methods(account: Account) -> str:
    result, model = account.result, words.MODELS[account.model]
    how = (
        f"by stratified cross-validation with {result.folds} folds (seed {account.seed}): every row was predicted by "
        "models that had learned from the other folds"
        if account.order is None
        else f"in the order of {quoted(account.order)}: every row was predicted by models that had learned from "
        f"earlier rows, anew before each of {result.folds} blocks (seed {account.seed}); exact posteriors among the "
        "models were updated within the blocks, too"
    )
    which = "rows" if result.group is None else "groups"
    rows = f"Class probabilities of {(result.fold > 0).sum()} rows were computed with bayesgen and compared {how}"
    errors = f"Standard errors are over {which}; rows of different folds share most of what they are predicted from"
    small = "so the errors are somewhat too small, and they say nothing of other rows to learn from"
    return f"{rows}. Inferences of {model}: {', '.join(result.probability)}. {errors}, {small}."


def _citation() -> str:
    """Return the citation of CITATION.cff, plainly and for BibTeX."""
    about = metadata.metadata("bayesgen")
    author, title, version = about["Author"], f"bayesgen: {about['Summary']}", about["Version"]
    fields = [f"author = {{{{{author}}}}}", f"title = {{{{{title}}}}}", f"version = {{{version}}}"]
    entry = ",\n  ".join(["@software{bayesgen", *fields])
    return f"{author}. {title}. Version {version}.\n\n{entry}\n}}"
