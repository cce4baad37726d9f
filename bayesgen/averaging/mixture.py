"""Mixture members: classes in several components, each a Gaussian under the priors of `gaussian`.

The centres of the components are learned by k-means (`components`), without the rows that are left out; the statistics
of the groups subtract these rows.
"""

from dataclasses import dataclass

import numpy as np

from bayesgen.averaging.gaps import WIDE
from bayesgen.averaging.gaussian import GroupsMember
from bayesgen.averaging.rows import Rows
from bayesgen.averaging.training import Setting, Training
from bayesgen.averaging.views import FittedView

COMPONENTS = (2, 3, 5, 8)


@dataclass(frozen=True, eq=False)
class MixtureMember(GroupsMember):
    """Several Gaussians per class.

    Attributes
    ----------
    most : int
        Components per class; fewer where it has fewer than three rows for each.
    """

    most: int = 2

    @property
    def components(self) -> int:
        """Largest number of components in a class."""
        return self.most

    @property
    def family(self) -> str:
        """The number of components, whatever their structure."""
        return f"{self.most} components"

    @classmethod
    def propose(cls, rows: Rows, setting: Setting):
        """Propose numbers of components for which the largest class has rows enough; they have no evidence."""
        dim, largest = rows.x.shape[1], np.bincount(rows.codes, minlength=1).max()
        if not 0 < dim <= WIDE or setting.evidence:
            return []
        return [cls._of(dim, count) for count in COMPONENTS if largest >= 3 * count]

    @classmethod
    def _of(cls, dim: int, most: int):
        result = []
        if dim > 1:
            result += [cls("full", r, 0.1, s, most) for r in (4.0, 16.0, 64.0) for s in (0.3, 1.0)]
            result += [cls("shared", r, 0.1, most=most) for r in (2.0, 16.0)]
        result += [cls("diagonal", r, 0.1, most=most) for r in (4.0, 16.0)]
        return (*result, cls("shared diagonal", 2.0, 0.1, most=most))

    @classmethod
    def fit(cls, groups, training: Training):
        """Learn the components of each group of members, and sum the rows by component."""
        return [FittedView.fit(group, training, group[0].most) for group in groups]
