"""Growth: time against rows, columns, classes and draws, ours and scikit-learn's, drawn under `figures/`."""

import warnings
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from bayesgen import GaussianDiscriminantClassifier, NaiveBayesClassifier
from bayesgen.numerics.draws import log_mean_density
from benchmarks.fit import model, rows
from benchmarks.timing import Table, agree, medians

NOTE = (
    "Fits through the estimators: naive Bayes of 4 columns and 3 classes against rows; full covariances of 10,000 rows "
    "and 3 classes against columns; naive Bayes of 20,000 rows of 10 columns against classes; and the average over "
    "draws of 2000 rows. Time at the largest over time at the smallest, ours; `against` is the factor of the size, or "
    "a peer at the largest size, where the ratio is its time over ours."
)
FIGURES = Path(__file__).parent / "figures"


def fits(ours, peer, means, cells):
    """Median seconds of fit for (rows, columns, classes), ours and the peer's, whose ``means`` of classes are ours."""
    result = []
    for n, dim, groups in cells:
        x, t = rows("gaussian", n, dim, groups)
        own = next(iter(ours.fit(x, t).statistics_.leaves.values()))
        agree("means", own.mean, getattr(peer.fit(x, t), means), 1e-9)
        contenders = {"bayesgen": lambda x=x, t=t: ours.fit(x, t), type(peer).__name__: lambda x=x, t=t: peer.fit(x, t)}
        result.append(medians(contenders, 3 if dim < 1000 else 1))
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
    columns = [2, 10] if quick else [2, 10, 50, 200, 1000, 2000]
    classes = [2, 5] if quick else [2, 10, 100, 1000, 5000]
    draws = [16, 64, 256] if quick else [100, 1000, 4000]
    naive, full = NaiveBayesClassifier(), GaussianDiscriminantClassifier()
    curves = {
        "rows": (many, lambda: fits(naive, GaussianNB(), "theta_", [(v, 4, 3) for v in many])),
        "columns": (
            columns,
            lambda: fits(full, QuadraticDiscriminantAnalysis(), "means_", [(10_000, v, 3) for v in columns]),
        ),
        "classes": (classes, lambda: fits(naive, GaussianNB(), "theta_", [(20_000, 10, v) for v in classes])),
        "draws": (draws, lambda: averages(draws)),
    }
    table = Table("Growth", NOTE)
    for axis, (values, measure) in curves.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            times = measure()
        table.add(axis, f"{values[-1] / values[0]:g}", times[-1]["bayesgen"] / times[0]["bayesgen"], None)
        for name in list(times[0])[1:]:
            table.add(f"{axis}, {values[-1]:g}", name, times[-1][name] / times[-1]["bayesgen"], None)
        if not quick:
            picture(axis, values, times)
            table.note += f"\n\n![time against {axis}](figures/{axis}.png)"
    return [table]
