r"""Gaussian members: conjugate models of group means and covariances, whose priors follow the data.

V and m are those of `students.Reference`; rho is the number of rows the prior covariance is worth, l its shrinkage
towards the diagonal, kappa the number of rows the prior mean is worth. The rows of a group have the model

- "full": `NormalInverseWishart` (m, kappa, D + 1 + rho, rho ((1 - l) V + l diag V));
- "shared": one covariance for all groups, `NormalInverseWishart` (m, kappa, D + 1 + rho, rho diag V);
- "diagonal": independent columns, each `NormalInverseGamma` (m, kappa, 1 + rho/2, rho diag V/2);
- "shared diagonal": the same with one variance per column for all groups.

(Gelman et al. 2013, *Bayesian Data Analysis*, section 3.6; Friedman 1989, *JASA* 84, for l.) A mixture member has
several Gaussians per class, each under these priors, about the components of its `view`.
"""

import abc
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesgen.averaging.fitted_view import FittedView
from bayesgen.averaging.member import NUMBERS, Member, Setting
from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.students import Reference, by_column
from bayesgen.averaging.view import WIDE, Training
from bayesgen.averaging.wide import WideView
from bayesgen.models.gaussian import NormalInverseGamma
from bayesgen.models.model import unchecked
from bayesgen.models.moments import Moments
from bayesgen.models.normal_inverse_wishart import NormalInverseWishart

STRUCTURES = ("full", "shared", "diagonal", "shared diagonal")
KAPPAS = (0.01, 1.0)
COMPONENTS = (2, 3, 5, 8)
_RHOS = (2.0, 8.0, 32.0, 128.0)
_MOST = 1000  # rows whose span is taken where columns are many


@dataclass(frozen=True, eq=False)
class GroupsMember(Member):
    """One choice of structure and prior strengths for groups of rows."""

    blocks: ClassVar = (NUMBERS,)
    subtracts: ClassVar = True

    structure: str  # structure of the covariances of the groups
    rho: float  # rows the prior covariance is worth
    kappa: float  # rows the prior mean is worth
    shrinkage: float = 1.0  # l, from V (0) to its diagonal (1)

    @property
    @abc.abstractmethod
    def components(self) -> int:
        """Largest number of groups in a class."""

    @property
    def proper(self) -> bool:
        """True if the structure is known and the strengths are above 0."""
        return self.structure in STRUCTURES and self.rho > 0 and self.kappa > 0

    @property
    def diagonal(self) -> bool:
        """True if columns are independent in each group."""
        return "diagonal" in self.structure

    @property
    def shared(self) -> bool:
        """True if all groups share one covariance."""
        return "shared" in self.structure

    def prior(self, reference: Reference):
        """Return the prior of a group, as a model."""
        V, mean, kappa = reference.covariance[0], reference.centre[0], np.array(self.kappa)
        if self.diagonal:
            tied = ("class",) if self.shared else ()
            shape = {"alpha": np.array(1 + self.rho / 2), "beta": self.rho * reference.variance[0] / 2}
            return unchecked(NormalInverseGamma, mean=mean, kappa=kappa, tied=tied, **shape)
        scale = self.rho * ((1 - self.shrinkage) * V + self.shrinkage * np.diag(np.diag(V)))
        nu = np.array(len(V) + 1 + self.rho)
        return unchecked(NormalInverseWishart, mean=mean, kappa=kappa, nu=nu, scale=scale, shared=self.shared)

    def posterior(self, statistics: Moments, reference: Reference):
        """Return the posterior of every group."""
        return self.prior(reference).update(self._own(statistics))

    def log_evidence(self, statistics: Moments, reference: Reference) -> float:
        """Return log p(X | t) of all rows; the priors follow the data, so it is an empirical Bayes quantity."""
        return float(self.prior(reference).log_evidence(self._own(statistics)))

    def _own(self, statistics: Moments) -> Moments:
        """Return the statistics that the model takes: each column by itself if it is diagonal."""
        return by_column(statistics) if self.diagonal else statistics

    @classmethod
    def seconds(cls, group, rows: Rows) -> float:
        """Estimate the seconds to leave out a row: one factorisation for every group and prior covariance."""
        count, dim = group[0].components, rows.x.shape[1]
        groups = (np.bincount(rows.codes, minlength=rows.classes) * rows.each // 3).astype(int)
        full = len({(m.rho, m.shrinkage) for m in group if m.structure == "full"})
        shared = sum(m.structure == "shared" for m in group)
        return (full * groups.clip(1, count).sum() + shared) * (3e-6 + 1.6e-10 * (dim + 2) ** 3)

    def settings(self):
        return {
            "kind": "generative",
            "components": self.components,
            "covariance": self.structure,
            "rho": self.rho,
            "kappa": self.kappa,
            "shrinkage": self.shrinkage,
        }


@dataclass(frozen=True, eq=False)
class GaussianMember(GroupsMember):
    """One Gaussian per class, of some structure and strengths."""

    @property
    def components(self) -> int:
        return 1

    @property
    def family(self) -> str:
        return self.structure

    @classmethod
    def propose(cls, rows: Rows, setting: Setting):
        """Propose full and shared covariances, of many columns by themselves, and diagonal ones."""
        dim = rows.x.shape[1]
        if not dim:
            return []
        result = []
        if 1 < dim <= WIDE:
            result += [cls("full", r, k, s) for r in _RHOS for s in (0.1, 0.4, 1.0) for k in KAPPAS]
            result += [cls("shared", r, k) for r in _RHOS for k in KAPPAS]
        result += [cls("diagonal", r, k) for r in (2.0, 8.0, 32.0) for k in KAPPAS]
        result += [cls("shared diagonal", 2.0, k) for k in KAPPAS]
        wide = [cls("shared", r, k) for r in (*_RHOS, 512.0) for k in KAPPAS]
        wide += [cls("full", r, k, s) for s in (0.1, 0.4, 1.0) for r in _RHOS for k in KAPPAS]
        wide.sort(key=lambda member: member.shrinkage)  # stable: members of one scale stand together
        return [tuple(result), *([tuple(wide)] if dim > WIDE and len(rows) <= _MOST else [])]

    @classmethod
    def fit(cls, groups, training: Training):
        """Learn bends, and sum the rows by class."""
        wide = training.rows.x.shape[1] > WIDE
        together = [wide and not any(member.diagonal for member in group) for group in groups]
        return [
            WideView.fit(group, training) if flag else FittedView.fit(group, training, 1)
            for group, flag in zip(groups, together, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class MixtureMember(GroupsMember):
    """Several Gaussians per class."""

    most: int = 2  # components per class; fewer where it has fewer than three rows for each

    @property
    def components(self) -> int:
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
