"""Growth: time against rows, columns, classes and draws, ours and scikit-learn's, drawn under `figures/`."""

from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from bayesgen.posterior import log_mean_density
from benchmarks.fit import as_rows, model, rows
from benchmarks.timing import Table, agree, medians

FIGURES = Path(__file__).parent / "figures"


def fits(family, make, cells):
    """Median seconds of fit for (rows, columns, classes), ours and the peer's."""
    result = []
    for n, dim, groups in cells:
        x, t = rows("gaussian", n, dim, groups)
        ours = model(family, dim, groups)
        own = next(iter(ours.statistics(as_rows(ours, x), t).leaves.values()))
        agree("means", own.mean, np.stack([x[t == k].mean(0) for k in range(groups)]), 1e-9)
        contenders = {
            "bayesgen": lambda ours=ours, x=x, t=t: ours.update(ours.statistics(as_rows(ours, x), t)),
            make.__name__: lambda x=x, t=t: make().fit(x, t),
        }
        result.append(medians(contenders, 3))
    return result


def averages(draws):
    """Median seconds of an average over draws."""
    x, t = rows("gaussian", 2000, 10, 3)
    ours = model("vector", 10, 3)
    posterior = ours.update(ours.statistics(x, t))
    result = []
    for count in draws:
        params = posterior.sample_parameters(np.random.default_rng(0), (count,))
        result.append(medians({"bayesgen": lambda params=params: log_mean_density(ours, params, ours.check(x))}, 3))
    return result


def picture(axis: str, values, times) -> None:
    """Draw one curve a contender, both axes logarithmic, relative to the first time of ours."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
    unit = times[0]["bayesgen"]
    for name in times[0]:
        ax.loglog(values, [time[name] / unit for time in times], "o-", label=name)
    ax.set(xlabel=axis, ylabel=f"time (bayesgen at {values[0]:g} = 1)")
    ax.legend(frameon=False)
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(FIGURES / f"{axis}.png", dpi=80)
    plt.close(figure)


def run(quick: bool = False) -> list[Table]:
    """Fill the table; draw the pictures where sizes are not quick."""
    many = [10**e for e in range(2, 5 if quick else 8)]
    columns, classes = ([2, 10], [2, 5]) if quick else ([2, 5, 10, 30, 100], [2, 5, 10, 30, 100])
    n = 1000 if quick else 20_000
    curves = {
        "rows": (many, lambda: fits("gaussian", GaussianNB, [(v, 4, 3) for v in many])),
        "columns": (columns, lambda: fits("vector", QuadraticDiscriminantAnalysis, [(n, v, 3) for v in columns])),
        "classes": (classes, lambda: fits("gaussian", GaussianNB, [(n, 10, v) for v in classes])),
        "draws": ([16, 64, 256], lambda: averages([16, 64, 256]))
        if quick
        else ([100, 1000, 4000], lambda: averages([100, 1000, 4000])),
    }
    table = Table("Growth", "Time at the largest over time at the smallest, ours; `against` is the factor of the size.")
    for axis, (values, measure) in curves.items():
        times = measure()
        table.add(axis, f"{values[-1] / values[0]:g}", times[-1]["bayesgen"] / times[0]["bayesgen"], None)
        if not quick:
            picture(axis, values, times)
            table.note += f"\n\n![time against {axis}](figures/{axis}.png)"
    return [table]
