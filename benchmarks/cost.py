"""Log loss of every contender of the quality benchmark against the CPU time of its fit and predictions, in one run."""

from itertools import chain
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.quality import Part, measure, read, results
from benchmarks.rivals import NUMERIC, OURS, SKLEARN

HERE = Path(__file__).parent
SIZES = ("20", "100")
NOTE = (
    "Means over the {tables} numeric development sets that have 100 rows a class, first split, at 20 and at 100 rows a "
    "class; all contenders in one run on one core, so that times compare. Time is that of a fit and of the predictions "
    "of up to 1,000 rows."
)


class Costs:
    """Log loss and time of each contender, as a table of Markdown and a picture."""

    def __init__(self, frame: pd.DataFrame):
        own = frame[frame.error.isna()].pivot_table(index=["data", "rows"], columns="model", values=["log_loss", "cpu"])
        own = own.dropna(axis=1, thresh=int(0.9 * len(own))).dropna()
        sizes = own.reset_index().groupby("data").rows.agg(set)
        own = own.loc[[name for name, found in sizes.items() if found >= set(SIZES)]]
        self.tables = len(own.index.unique("data"))
        self.mean = own.groupby("rows").mean().stack("model", future_stack=True).reset_index()

    def markdown(self) -> str:
        """Return a line for each contender, by log loss at the larger size."""
        wide = self.mean.pivot(index="model", columns="rows", values=["log_loss", "cpu"]).sort_values(
            ("log_loss", "100")
        )
        head = ["contender", *chain(*((f"log loss, {n} a class", f"seconds, {n} a class") for n in SIZES))]
        lines = ["## Time and log loss", "", NOTE.format(tables=self.tables), ""]
        lines += ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
        for model, own in wide.iterrows():
            entries = chain(*((f"{own['log_loss', n]:.3f}", f"{own['cpu', n]:.3g}") for n in SIZES))
            lines.append(f"| {model} | " + " | ".join(entries) + " |")
        return "\n".join([*lines, "", "![log loss against time](figures/cost.png)", ""])

    def draw(self, path: Path) -> None:
        """Draw a numbered point for each contender and size; the numbers go by log loss at the larger size."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        last = self.mean[self.mean.rows == SIZES[-1]].sort_values("log_loss")
        number = {model: place for place, model in enumerate(last.model, 1)}
        figure = Figure(figsize=(11, 5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, 2)
        for ax, size in zip(axes, SIZES, strict=True):
            for _, point in self.mean[self.mean.rows == size].sort_values("log_loss").iterrows():
                colour = "#D55E00" if point.model == OURS else "#0072B2"
                label = f"{number[point.model]}  {point.model.removeprefix('bayesgen ')}"
                ax.plot(point.cpu, point.log_loss, "o", color=colour, ms=4, label=label)
                at = (point.cpu, point.log_loss)
                ax.annotate(number[point.model], at, (4, 2), textcoords="offset points", fontsize=8, color=colour)
            ax.set(xscale="log", yscale="log", xlabel="seconds of CPU", title=f"{size} rows a class")
        axes[0].set(ylabel="log loss of new rows")
        figure.legend(*axes[1].get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
        figure.savefig(path, dpi=130)


def run(quick: bool = False) -> list[Costs]:
    """Measure the lines that `cost.csv` lacks, and draw the picture."""
    part = Part(("iris",) if quick else (*SKLEARN, *NUMERIC), ("20",) if quick else SIZES, splits=1)
    kept = results(Path("build/cost-quick.csv") if quick else HERE / "cost.csv")
    with threadpool_limits(1):
        measure(kept, part)
    if quick:
        return []
    costs = Costs(read(kept))
    costs.draw(HERE / "figures" / "cost.png")
    return [costs]
