"""The Bayes net of a NumPyro program, drawn without Graphviz."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bayesgen.plot.style import QUIET, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bayes_net(model: Callable, *args, ax: "Axes | None" = None) -> "Axes":
    """Draw the Bayes net of a program: an arrow leads from each random quantity to those that are drawn given it.

    Observed quantities are grey. Below a name stand the plates of the program, for which it is repeated.

    Parameters
    ----------
    model : callable
        A model of `bayesgen.models`, ``model_`` of a fitted classifier, or another NumPyro model function.
    *args
        Arguments of the program, such as rows and classes.
    ax : matplotlib Axes, default: the current Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from bayesgen.models import BetaBernoulli
    >>> ax = bayes_net(BetaBernoulli(2, 2), np.array([1, 1]), ax=Figure().subplots())
    >>> [text.get_text().splitlines() for text in ax.texts if text.get_text()]
    [['probability'], ['x', 'for each row']]
    """
    from numpyro.infer.inspect import get_model_relations

    ax, relations = axes(ax), get_model_relations(model, model_args=args)
    parents = {
        site: [one for one in above if one != site]
        for site, above in relations["sample_sample"].items()
        if relations["sample_dist"][site] != "Deterministic"
    }
    place, circles = _places(parents), {}
    for site, (x, y) in place.items():
        within = [plate for plate, sites in relations["plate_sample"].items() if site in sites]
        short = [plate.split("__")[0].split(".")[-1] for plate in within]
        plates = sorted({"row" if plate == "obs" else plate for plate in short})
        label = f"{site}\nfor each {', '.join(plates)}" if plates else site
        grey = "0.85" if site in relations["observed"] else "white"
        shape = {"boxstyle": "round,pad=0.5", "facecolor": grey, "edgecolor": QUIET}
        circles[site] = ax.text(x, y, label, ha="center", va="center", fontsize=8, zorder=2, bbox=shape)
    for site, above in parents.items():
        for parent in above:
            bend = 0.25 if place[parent][1] - place[site][1] > 1 else 0.0  # around what stands between
            ends = {"patchA": circles[parent].get_bbox_patch(), "patchB": circles[site].get_bbox_patch()}
            arrow = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}", "color": QUIET, **ends}
            ax.annotate("", place[site], place[parent], arrowprops=arrow, zorder=3)
    across, down = np.array(list(place.values())).T
    ax.set(xlim=(across.min() - 0.6, across.max() + 0.6), ylim=(down.min() - 0.5, down.max() + 0.5))
    ax.axis("off")
    return ax


def _places(parents: dict[str, list[str]]) -> dict[str, tuple[float, float]]:
    """Return a place for each site: below its parents, and just above the first of its children."""
    children = {site: [one for one in parents if site in parents[one]] for site in parents}
    depth: dict[str, int] = {}
    for site in parents:  # in the order of the program, parents before children
        depth[site] = 1 + max((depth[one] for one in parents[site]), default=-1)
    for site in reversed(list(parents)):
        depth[site] = min((depth[one] for one in children[site]), default=depth[site] + 1) - 1
    place: dict[str, tuple[float, float]] = {}
    for level in range(max(depth.values()) + 1):
        sites = [site for site in parents if depth[site] == level]
        sites.sort(key=lambda site: np.mean([place[one][0] for one in parents[site]] or [np.inf]))
        place |= {site: (i - (len(sites) - 1) / 2, -float(level)) for i, site in enumerate(sites)}
    return place
