"""Summary of a fitted classifier, by column and class: a table for the screen, for a frame, for a paper."""

import html
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bayesgen.core.errors import NoClosedForm
from bayesgen.core.registry import fitted_of
from bayesgen.inspection.leave_one_out import by_column
from bayesgen.models.beside_constants import BesideConstants, varying
from bayesgen.models.population import Populated
from bayesgen.tables.dates import as_date

if TYPE_CHECKING:
    import pandas as pd

_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"} | {"~": r"\textasciitilde{}", "\\": r"\textbackslash{}"}
)


@dataclass(frozen=True, eq=False)
class Summary:
    """Summary of what was learned, by column and class; a table when printed, and in a notebook.

    Attributes
    ----------
    title : str
        Name of the classifier and of its inference.
    rows : dict from class to float
        Rows of each class, by weight.
    values : dict from (column, quantity) to array, shape (K,)
        Posterior means, or the point estimate: "mean" and "sd" (the root of the mean variance; of the logarithm where
        it is the logarithm that is Gaussian), "mean count", "P(level)".
    gaps : dict from column to float
        Number of missing entries at the fit, if counted by column.
    prior : dict from column to str
        Prior of each column, in one class.
    dates : tuple of str
        Columns of days since 1970-01-01, whose means are shown as dates and whose deviations are days.
    intervals : dict from (column, quantity) to array, shape (K, 2)
        Ends of the 95 % intervals of values, where they are known.
    program : str
        The model in plain NumPyro, if it can be written: folded in a notebook.
    """

    title: str
    rows: dict
    values: dict[tuple[str, str], np.ndarray]
    gaps: dict[str, float]
    prior: dict[str, str]
    dates: tuple[str, ...] = ()
    intervals: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    program: str = ""

    @classmethod
    def of(cls, classifier) -> "Summary":
        """Summarise a fitted classifier of one model."""
        classifier = fitted_of(classifier)
        model, posterior, schema = classifier.model_, classifier.posterior_, classifier.schema_
        try:
            means = posterior.mean()
        except (NoClosedForm, AttributeError):  # a leaf of the user's own
            means = posterior.point_or_draws(np.random.default_rng(0), 4000)
            means = {site: np.mean(v, axis=0) for site, v in means.items()}
        classes = classifier.classes_.tolist()
        size = getattr(classifier.statistics_, "sizes", classifier.statistics_.classes.sums)
        values = {
            ("class", "probability"): np.broadcast_to(model.site(means, "classes")["probability"], (len(classes),))
        }
        prior = {"class": model.classes.prior_of(0)}
        seen = by_column(schema, model, classifier.statistics_)
        gaps = {c: float((size - sums["count"]).sum().round(9)) + 0.0 for c, sums in seen.items() if "count" in sums}
        for block in schema.blocks:
            leaf, sites = model.leaves[block.name], model.site(means, block.name)
            if isinstance(leaf, BesideConstants):
                for column, value in leaf.constants(block.columns).items():
                    levels = block.categories
                    what = (column, "constant") if levels is None else (column, f"P({levels[int(value)]})")
                    values[what] = np.full(len(classes), float(value) if levels is None else 1.0)
            prior_leaf, columns = varying(leaf, block.values)
            leaf = prior_leaf
            if isinstance(leaf, Populated):
                leaf, sites = leaf.leaf, leaf.shown(sites)
            expanded = leaf.select_class(sites, ...) if "variance" in sites else sites
            for j, column in enumerate(columns):
                values |= {(column, name): v for name, v in leaf.quantities(expanded, j, block.categories).items()}
                if not (leaf.event_dim and j):  # one prior of them all
                    prior[column] = prior_leaf.prior_of(j)
        how = {"exact": "the exact posterior", "draws": "draws of the posterior", "point": "a point estimate"}
        how["memberships"] = "the posterior given memberships"
        title = f"{classifier.estimator}, {how.get(posterior.kind, 'posterior means')}"
        return cls(title, dict(zip(classes, size.tolist(), strict=True)), values, gaps, prior, schema.dates)

    def to_frame(self) -> "pd.DataFrame":
        """Return the numbers by (column, quantity) and class, a DataFrame."""
        import pandas as pd

        index = pd.MultiIndex.from_tuples(list(self.values), names=["column", "quantity"])
        return pd.DataFrame(np.array(list(self.values.values())), index=index, columns=list(self.rows))

    def to_latex(self) -> str:
        """Return a LaTeX table (booktabs) with the mean and in brackets the standard deviation, for a paper."""
        heads = ["", *(f"{label} ($n = {n:g}$)".translate(_LATEX | {ord("$"): "$"}) for label, n in self.rows.items())]
        lines = [rf"\begin{{tabular}}{{l{'r' * len(self.rows)}}}", r"\toprule", " & ".join(heads) + r" \\", r"\midrule"]
        for column, quantity, cells in self._lines():
            name = f"{column}, {quantity}" if quantity else column
            cells = [f"{cell.replace(' ± ', ' (')})" if " ± " in cell else cell for cell in cells]
            lines.append(" & ".join([name.translate(_LATEX), *cells]) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])

    def _lines(self):
        """Yield column, quantity and the text of every class; a mean and its deviation are one line."""
        for (column, quantity), values in self.values.items():
            if quantity.startswith("sd"):
                continue
            deviation = self.values.get((column, quantity.replace("mean", "sd")))
            if quantity.startswith("mean") and deviation is not None:
                shown = _date if column in self.dates else _with_deviation
                yield column, quantity.removeprefix("mean").strip(), list(map(shown, values, deviation))
            else:
                yield column, quantity, [f"{v:.0f}" if 1000 <= abs(v) < 1e6 else f"{v:.3g}" for v in values]

    def _table(self):
        """Yield the cells of every line: column, quantity, the text of each class, gaps and prior."""
        for column, quantity, cells in self._lines():
            name = quantity if (column, quantity) in self.intervals else f"mean {quantity}".strip()
            if (column, name) in self.intervals and column not in self.dates:
                ends = self.intervals[column, name]
                cells = [f"{cell} [{low:.3g}, {high:.3g}]" for cell, (low, high) in zip(cells, ends, strict=True)]
            gaps = f"{self.gaps[column]:g}" if column in self.gaps else ""
            yield column, quantity, *cells, gaps, self.prior.get(column, "")

    def __rich__(self):
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=Text(self.title), title_justify="left")
        for heading in ("column", "", *(f"{label}\n{n:g} rows" for label, n in self.rows.items()), "gaps", "prior"):
            table.add_column(Text(heading), justify="left" if heading in ("column", "", "prior") else "right")
        last = None
        for column, *cells in self._table():
            table.add_row(*map(Text, ("", *cells[:-2], "", "") if column == last else (column, *cells)))
            last = column
        return table

    def __repr__(self):
        from rich.console import Console

        out = Console(file=io.StringIO(), width=120, color_system=None)
        out.print(self)
        return out.file.getvalue().rstrip()  # type: ignore[attr-defined]  # it is the one above

    def _repr_html_(self):
        heads = ("column", "", *(f"{label}, {n:g} rows" for label, n in self.rows.items()), "gaps", "prior")
        lines = [_html_row("th", heads), *(_html_row("td", cells) for cells in self._table())]
        folded = f"<details><summary>In NumPyro</summary><pre>{html.escape(self.program)}</pre></details>"
        table = f"<table><caption>{html.escape(self.title)}</caption>{''.join(lines)}</table>"
        return table + folded * bool(self.program)


def _html_row(tag: str, cells) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"


def _with_deviation(mean: float, deviation: float) -> str:
    """Write a mean to the second digit of its deviation: 38.8 ± 2.7."""
    digits = max(1 - int(np.floor(np.log10(deviation))), 0) if 0 < deviation < np.inf else 3
    return f"{mean:.{digits}f} ± {f'{deviation:.{digits}f}' if np.isfinite(deviation) else 'infinite'}"


def _date(mean: float, deviation: float) -> str:
    """Write a mean date to the day, with its deviation: 2024-01-31 ± 34 days."""
    return f"{as_date(round(mean))} ± {deviation:{'.2g' if deviation < 99.5 else '.0f'}} days"
