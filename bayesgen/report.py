"""What the commands print and write: tables that no terminal is too narrow for, notes, predictions and pictures."""

import io
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bayesgen.plot import words
from bayesgen.tables.messages import MOST, counted, named, quoted

FILES = ("calibration.png", "probabilities.png", "models.png", "predictions.csv", "posterior.nc")


def escape() -> None:
    """Make what the terminal's encoding lacks an escape, not an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def consoles() -> tuple[Console, Console]:
    """Standard output and standard error."""
    return Console(), Console(stderr=True)


def say(out: Console, text: str, indent: int = 0) -> None:
    """Print one line, unbroken."""
    out.print(Text(" " * indent + text), soft_wrap=True)


def tell_table(out: Console, read, target, prepared, schema) -> None:
    """Print what was read: rows, classes, columns by family, and what was left out or is doubtful."""
    import numpy as np

    classes, counts = np.unique(prepared.y, return_counts=True)
    sizes = ", ".join(f"{quoted(c)} {n}" for c, n in list(zip(classes.tolist(), counts, strict=True))[:MOST])
    more = f" and {len(classes) - MOST} more" if len(classes) > MOST else ""
    say(out, f"{read.source}: {len(read.table)} rows, {read.table.shape[1]} columns; {len(prepared.y)} rows used")
    say(out, f"{quoted(target)}, {len(classes)} classes: {sizes}{more}", indent=2)
    families = defaultdict(list)
    for block in schema.blocks:
        family = "categorical" if block.categories else block.leaf
        families[family] += [(column, block.categories) for column in block.columns]
    for family, columns in families.items():
        levels = [quoted(c) + (f" ({named(categories)})" if categories else "") for c, categories in columns[:MOST]]
        more = f" and {len(columns) - MOST} more" if len(columns) > MOST else ""
        say(out, f"{family}: {', '.join(levels)}{more}", indent=2)
    for note in (*read.notes, *prepared.notes):
        say(out, note, indent=2)


def tell_gaps(out: Console, read, columns) -> None:
    """Print what was taken as missing in the columns that are used."""
    from bayesgen.tables.fields import counts_of

    spelled = [word for column in columns for word in read.gaps[column]]
    if spelled:
        say(out, f"{counted(len(spelled), 'missing value')}: {counts_of(spelled)}", indent=2)


def tell_result(out: Console, result, folds) -> None:
    """Print the scores of every inference, side by side where the terminal is wide enough, else below each other."""
    from bayesgen.inspection.draw_reliability import FEWEST

    if result.folds < folds:
        say(out, f"{result.folds} folds, not {folds}: the smallest class has no more rows", indent=2)
    _columns(out, "inference", {name: _scores(result, name) for name in result.probability})
    for note in _notes(result):
        out.print(Text(note), overflow="fold")
    if {"nuts", "exact"} <= result.probability.keys() and (apart := result.difference("nuts", "exact")).size:
        mean, most = f"{apart.mean():.5f}", f"{apart.max():.5f}"
        say(out, f"NUTS and exact class probabilities differ by {mean} on average and {most} at most.")
    for name, rows in result.doubtful.items():
        if count := int(rows.sum()):
            say(out, f"{name}: {counted(count, 'row')} of {len(rows)} rest on fewer than {FEWEST} effective draws;")
            say(out, "their probabilities are rough, and exact ones, where they exist, are not.")


def tell_models(out: Console, result) -> None:
    """Print the scores of every model, the best first, and what was done for its sake."""
    rows = {}
    for name, row in result.table.iterrows():
        values = {
            "log\nloss": f"{row['log_loss']:.4f}",
            "std.\nerror": f"{row['standard_error']:.4f}",
            "above\nbest": "-" if name == result.best else f"{row['difference']:.4f}",
            "error\nof it": "-" if name == result.best else f"{row['difference_error']:.4f}",
            "Brier\nscore": f"{row['brier_score']:.4f}",
            "calib.\nerror": f"{row['calibration_error']:.4f}",
            "accuracy": f"{row['accuracy']:.4f}",
        }
        values = values if row["folds"] else dict.fromkeys(values, "-")
        rows[str(name)] = values | {"seconds": f"{row['seconds']:.2f}"}
    _columns(out, "model", rows)
    told = defaultdict(list)
    for name, remark in result.remarks.items():
        told[remark].append(name)
    for remark, names in told.items():
        out.print(Text(f"{', '.join(names)}: {remark}"), overflow="fold")
    for note in _notes(result):
        out.print(Text(note), overflow="fold")
    say(out, "Above best: mean difference in log loss, row by row, with its standard error.")


def tell_evidence(out: Console, told) -> None:
    """Print what each value of a row does to the odds of a class, the strongest first."""
    say(out, f"P({told.label}) = {words.probability(told.probability)}, 90 % interval {words.interval(told.interval)}")
    rows = {"prior": {"value": "", "log odds": f"{told.prior:+.2f}", "odds": words.odds(told.prior)}}
    for column, term in sorted(told.terms.items(), key=lambda item: -abs(item[1])):
        rows[column] = {
            "value": words.value(told.values[column]),
            "log odds": f"{term:+.2f}",
            "odds": words.factor(term),
        }
    _columns(out, "column", rows)
    total = told.prior + sum(told.terms.values())
    say(out, f"Together {total:+.2f}: odds of {words.odds(total)}.")


def draw_evidence(path: Path, told) -> None:
    """Draw the same as bars."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from bayesgen import plot

    figure = Figure(figsize=(6.4, 1.3 + 0.3 * (1 + len(told.terms))), layout="constrained")
    FigureCanvasAgg(figure)
    plot.evidence(told, ax=figure.subplots())
    figure.savefig(path, dpi=150)


def _columns(out: Console, first: str, rows: dict[str, dict[str, str]]) -> None:
    """Print rows of values by heading, side by side where the terminal is wide enough, else below each other."""
    table = Table(first, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    headings = list(next(iter(rows.values())))
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, values in rows.items():
        table.add_row(name, *values.values())
    if out.measure(table, options=out.options.update(width=1000)).maximum <= out.width:
        out.print(table)
        return
    widest = max(map(len, headings))
    for name, values in rows.items():
        say(out, name)
        for heading, value in values.items():
            say(out, f"{heading.replace(chr(10), ' '):<{widest}} {value}", indent=2)


def _scores(result, name) -> dict[str, str]:
    """What the table says of one inference, by heading."""
    s = result.scores(name)
    values = {
        "accuracy": s.accuracy,
        "log\nloss": s.log_loss,
        "Brier\nscore": s.brier_score,
        "calib.\nerror": s.calibration_error,
    }
    compared = name != "exact" and "exact" in result.probability
    apart = result.difference(name) if compared else np.empty(0)
    return {
        "folds": f"{s.folds} of {result.folds}",
        **{heading: f"{value:.4f}" if s.folds else "-" for heading, value in values.items()},
        "seconds": f"{result.seconds[name]:.2f}",
        "largest\n|p-exact|": f"{apart.max():.4f}" if len(apart) else "-",
    }


def _notes(result):
    """Yield failures, then warnings, each text once with the inferences and folds it came from."""
    places = defaultdict(lambda: defaultdict(list))
    for note in sorted(result.notes, key=lambda note: not note.failed):
        places[note.failed, note.text][note.inference].append(note.fold)
    for (failed, text), where in places.items():
        folds = sorted({fold for found in where.values() for fold in found})
        which = f"fold{'s' * (len(folds) > 1)} {', '.join(map(str, folds))}"
        yield f"{', '.join(where)} {'left out of' if failed else 'warned in'} {which}: {text}"
    some = [name for name in result.probability if 0 < result.scores(name).folds < result.folds]
    if some:
        yield f"The scores of {', '.join(some)} are means over the rows of the other folds only."


def write(out: Console, folder: Path, result, models, prepared, whole) -> None:
    """Write predictions, pictures and the posterior of all rows; ``models`` is None where none were compared."""
    import numpy as np
    import pandas as pd

    columns = {"row": prepared.rows, **prepared.names, "fold": result.fold, "truth": prepared.y}
    others = {} if models is None else models.probability  # of the same folds
    for name, probability in (result.probability | others).items():
        learned = np.isfinite(probability.sum(1))
        name = name.replace(" ", "_")
        columns[f"{name}_class"] = np.where(learned, result.classes[probability.argmax(1)].astype(object), None)
        columns |= {f"{name}_p_{c}": p for c, p in zip(result.classes.tolist(), probability.T, strict=True)}
    pd.DataFrame(columns).to_csv(folder / "predictions.csv", index=False)
    _draw(folder, result)
    written = [file for file in FILES if file not in ("posterior.nc", "models.png")]
    for file in ("posterior.nc", "models.png"):
        (folder / file).unlink(missing_ok=True)  # of an earlier run
    if models is not None:
        _draw_models(folder / "models.png", models)
        written.append("models.png")
    try:
        whole.to_arviz().to_netcdf(folder / "posterior.nc", engine="h5netcdf")
        written.append("posterior.nc")
    except ValueError as error:
        say(out, f"posterior.nc is left out: {error}")
    say(out, f"Written to {folder}: {', '.join(written)}")


def _draw(folder: Path, result):
    """Draw without pyplot: no display, and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from bayesgen import plot

    names = [name for name in result.probability if result.learned(name).any()]
    reference = "exact" if "exact" in names and len(names) > 1 else None
    others = [name for name in names if name != reference]
    for file, panels in (("calibration", names), ("probabilities", others)):
        figure = Figure(figsize=(3.4 * len(panels) + 0.4, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for name, ax in zip(panels, axes, strict=True):
            rows = result.learned(name)
            if file == "calibration":
                plot.reliability(result.y_true[rows], result.probability[name][rows], ax=ax)
            else:
                rows &= result.learned(reference) if reference else rows
                against = result.probability[reference][rows] if reference else None
                plot.probabilities(result.y_true[rows], result.probability[name][rows], against, ax=ax)
                ax.set(xlabel=f"the same under {reference}" if reference else ax.get_xlabel())
            ax.label_outer()
            ax.set_title(f"{name}, {len(set(result.fold[rows]))} of {result.folds} folds", fontsize=10)
        figure.savefig(folder / f"{file}.png", dpi=150)


def _draw_models(path: Path, models):
    """Draw the models side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from bayesgen import plot

    figure = Figure(figsize=(6.4, 0.8 + 0.42 * len(models.probability)), layout="constrained")
    FigureCanvasAgg(figure)
    plot.models(models, ax=figure.subplots())
    figure.savefig(path, dpi=150)
