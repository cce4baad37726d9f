"""What an averaged classifier is made of."""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.averaging.average import families
from bayesgen.inspection.averaged import check_averaged
from bayesgen.plot.style import BLUE, QUIET, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def members(classifier, *, most: int = 12, ax: "Axes | None" = None) -> "Axes":
    """Draw the weight of each family of members as a bar, and beside it the exponents of the members in it.

    A family is a structure whatever its strengths: "full", "shared", "3 components", "softmax", and of mixed tables one
    of the numbers with one of the categories. The exponent, averaged by weight within the family, tells how far its
    densities are trusted: 1 is as they are, below it they were too sure.

    Parameters
    ----------
    classifier : fitted AveragedClassifier
        Whose members are drawn.
    most : int, default 12
        How many families to draw, the heaviest; those without weight are left out.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.

    Examples
    --------
    >>> from bayesgen import AveragedClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> axes = members(AveragedClassifier(components=False).fit(X[::5], y[::5]))
    >>> axes.get_xlabel()
    'weight'
    """
    check_averaged(classifier, "plot.members()")
    ax = axes(ax)
    names, place = np.unique(families(classifier.members_), return_inverse=True)
    weights = np.bincount(place, classifier.weights_)
    exponents = np.bincount(place, classifier.weights_ * classifier.exponents_)
    heaviest = [j for j in np.argsort(-weights, kind="stable")[:most] if weights[j] > 0][::-1]
    ax.barh([names[j] for j in heaviest], weights[heaviest], color=BLUE)
    reach = weights.max()
    for i, j in enumerate(heaviest):
        said = "" if names[j] == "base rate" else f"τ = {exponents[j] / weights[j]:.2f}"
        ax.text(weights[j] + 0.02 * reach, i, said, fontsize=8, va="center", color=QUIET)
    ax.set(xlim=(0, 1.2 * reach), xlabel="weight", title="What was averaged, and the exponents τ")
    return ax
