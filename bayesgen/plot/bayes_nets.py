"""Bayes nets, drawn without Graphviz: of a NumPyro program, or of arrows that are written down."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from bayesgen.numerics.checks import check_kind
from bayesgen.plot.style import QUIET, Axes, axes


def bayes_net(model: Callable, *args, names: Mapping[str, str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw the Bayes net of a program: an arrow leads from each random quantity to those that are drawn given it.

    Observed quantities are grey. A box is a plate of the program: what is inside is repeated for each of its elements.

    Parameters
    ----------
    model : callable
        A model of `bayesgen.models`, ``model_`` of a fitted classifier, or another NumPyro model function.
    *args
        Arguments of the program, such as rows and classes.
    names : mapping from site to text, optional
        What to write in place of the names of sites, such as ``{"x": r"$x_i$"}``.
    ax : matplotlib Axes, default: the current Axes

    Raises
    ------
    ValueError
        Where ``names`` has a name that is no site of the program.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from bayesgen.models import BetaBernoulli
    >>> ax = bayes_net(BetaBernoulli(2, 2), np.array([1, 1]), names={"probability": "θ"}, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts if text.get_text()]
    ['θ', 'x', 'each row']
    """
    if not callable(model):
        raise TypeError(f"model must be a NumPyro model function, or a model, got a {type(model).__name__}")
    from numpyro.infer.inspect import get_model_relations

    relations: Any = get_model_relations(model, model_args=args)
    called = dict(names or {})
    drawn: list[str] = [site for site, kind in relations["sample_dist"].items() if kind != "Deterministic"]
    if unknown := called.keys() - drawn:
        raise ValueError(f"names: {', '.join(sorted(unknown))}: no site of this program; it has {', '.join(drawn)}")
    plates: dict[str, list[str]] = {}
    for plate, sites in relations["plate_sample"].items():
        short = plate.split("__")[0].split(".")[-1]
        plates.setdefault("row" if short == "obs" else short, []).extend(s for s in sites if s in drawn)
    label: dict[str, str] = {site: called.get(site, site) for site in drawn}
    return net(
        {label[site]: [label[one] for one in relations["sample_sample"][site] if one != site] for site in drawn},
        observed=[label[site] for site in relations["observed"]],
        plates={plate: [label[site] for site in sites] for plate, sites in plates.items()},
        ax=ax,
    )


def net(
    parents: Mapping[str, Collection[str]],
    *,
    observed: Collection[str] = (),
    plates: Mapping[str, Collection[str]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a Bayes net that is written down, without a program.

    Parameters
    ----------
    parents : mapping from name to names
        The quantities, each after those from which an arrow leads to it.
    observed : collection of str
        Those that are grey.
    plates : mapping from name to names, optional
        The quantities that are repeated for each row, each class, or whatever the plate is called.
    ax : matplotlib Axes, default: the current Axes

    Raises
    ------
    ValueError
        Where an arrow comes from a quantity that does not stand before.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = net({"t": [], "cheap": ["t"], "Viagra": ["t"]}, observed=["cheap", "Viagra"], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts if text.get_text()]
    ['t', 'cheap', 'Viagra']
    """
    from matplotlib.patches import FancyBboxPatch

    check_kind("parents", parents, Mapping, "a mapping from name to the names of its parents")
    seen: set[str] = set()
    for name, above in parents.items():
        check_kind(f"parents[{name!r}]", above, (list, tuple, set, frozenset), "a list of names")
        if late := set(above) - seen:
            raise ValueError(f"an arrow leads from {', '.join(sorted(late))} to {name!r}: put it before {name!r}")
        seen.add(name)
    inside: dict[frozenset[str], list[str]] = {}  # plates of the same quantities are one box
    for plate, members in (plates or {}).items():
        inside.setdefault(frozenset(members), []).append(plate)
    ax, place, nodes = axes(ax), _places(parents, inside), {}
    for name, (x, y) in place.items():
        shape = {"boxstyle": "round,pad=0.5", "facecolor": "0.85" if name in observed else "white", "edgecolor": QUIET}
        nodes[name] = ax.text(x, y, name, ha="center", va="center", fontsize=9, zorder=3, bbox=shape)
    for name, above in parents.items():
        for parent in above:
            bend = 0.25 if place[parent][1] - place[name][1] > 1 else 0.0  # around what stands between
            ends = {"patchA": nodes[parent].get_bbox_patch(), "patchB": nodes[name].get_bbox_patch()}
            arrow = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}", "color": QUIET, **ends}
            ax.annotate("", place[name], place[parent], arrowprops=arrow, zorder=4)
    for members, called in inside.items():
        margin = 0.38 + 0.07 * sum(other < members for other in inside)  # wider where other boxes are within
        corners = np.array([place[name] for name in members])
        low, high = corners.min(0) - margin, corners.max(0) + margin
        style = {"boxstyle": "round,pad=0,rounding_size=0.08", "fill": False, "edgecolor": QUIET, "linewidth": 0.8}
        ax.add_patch(FancyBboxPatch(tuple(low), *(high - low), **style, zorder=1))
        below = {"ha": "right", "va": "bottom", "fontsize": 7, "color": QUIET, "zorder": 2}
        ax.text(high[0] - 0.03, low[1] + 0.02, f"each {' and '.join(called)}", **below)
    across, down = np.array(list(place.values())).T
    ax.set(xlim=(across.min() - 0.6, across.max() + 0.6), ylim=(down.min() - 0.7, down.max() + 0.5))
    ax.axis("off")
    return ax


def _places(parents: Mapping[str, Collection[str]], plates: Collection[frozenset]) -> dict[str, tuple[float, float]]:
    """Return a place for each quantity: just above the first of its children, below its parents of the same plate."""
    children = {name: [one for one in parents if name in parents[one]] for name in parents}
    depth: dict[str, int] = {}
    for name in parents:  # parents before children
        depth[name] = 1 + max((depth[one] for one in parents[name]), default=-1)
    for name in reversed(list(parents)):
        depth[name] = min((depth[one] for one in children[name]), default=depth[name] + 1) - 1
    across: dict[str, float] = {}
    for level in range(max(depth.values()) + 1):
        wished, last = {}, max(across.values(), default=-1.0)
        for name in [name for name in parents if depth[name] == level]:
            with_it = [one for one in parents[name] if any({one, name} <= plate for plate in plates)]
            wished[name] = np.mean([across[one] for one in with_it or parents[name]]) if parents[name] else last + 1
            last = max(last, wished[name])
        order, places = sorted(wished, key=lambda name: wished[name]), []
        for name in order:
            places.append(max(wished[name], places[-1] + 1 if places else -np.inf))
        shift = np.mean([wished[name] for name in order]) - np.mean(places)
        across |= {name: float(x + shift) for name, x in zip(order, places, strict=True)}
    for plate in plates:  # what is outside stands beside its box
        low, right = min(across[name] for name in plate), max(across[name] for name in plate)
        for level in {depth[name] for name in plate}:
            beside = [name for name in parents if depth[name] == level and name not in plate]
            within = [across[name] for name in beside if low - 1 < across[name] < right + 1]
            if within:
                shift = right + 1 - min(within)
                across |= {name: across[name] + shift for name in beside if across[name] >= min(within)}
    return {name: (across[name], -float(depth[name])) for name in parents}
