"""The list of the families of members, and those that a user chooses; products and summaries follow its order."""

from typing import Any

from bayesgen.averaging.categories import CategoryMember
from bayesgen.averaging.composed import CodedMember, ScreenedMember
from bayesgen.averaging.ensembles import BoostedMember, ForestMember
from bayesgen.averaging.gaussians import GaussianMember, MixtureMember
from bayesgen.averaging.member import Member, name_of
from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.outside import OutsideMember
from bayesgen.averaging.softmax import SoftmaxMember

FAMILIES: list[type[Member]] = [
    GaussianMember,
    MixtureMember,
    CategoryMember,
    SoftmaxMember,
    ScreenedMember,
    CodedMember,
    ForestMember,
    BoostedMember,
    OutsideMember,
]
# Below so many rows of two classes mixtures, screened and coded members take half of the time of a fit and buy nothing:
# with 10 rows of each class the log loss without them is higher by -.0015 ± .0019 on 12 tables of development, by .0003
# ± .0015 on 48 fresh ones, and by .0022 ± .0018 on 29 chosen for their numbers of few values; with 20 by .0074 ± .0064.
_FEW = 30
_LATER = {MixtureMember, ScreenedMember, CodedMember}


def worthwhile(families, rows: Rows) -> list[type[Member]]:
    """Return those of some families that buy something for rows: of few rows, where all take part, not all do."""
    few = rows.classes == 2 and rows.worth < _FEW and {*FAMILIES} - {*families} <= {OutsideMember}
    return [family for family in families if not (few and family in _LATER)]


def pairs(members) -> tuple[tuple[str, Any], ...]:
    """Return the names and classifiers among the argument ``members``."""
    every = members if isinstance(members, list | tuple) else ()
    return tuple(entry for entry in every if isinstance(entry, tuple) and len(entry) == 2)


def chosen(members, reserved=()) -> list[type[Member]]:
    """Return the families that ``members`` of `AveragedClassifier` names, in the order of the list, or raise an error.

    No classifier may have a ``reserved`` name.
    """
    named = {name_of(family): family for family in FAMILIES if family is not OutsideMember}
    pools = {
        "all": set(FAMILIES),
        "generative": {family for family in FAMILIES if family.blocks},
        **{name: {family} for name, family in named.items()},
    }
    wanted = [members] if isinstance(members, str) else members
    if not isinstance(wanted, list | tuple) or not wanted:
        raise ValueError(f"members must be 'all', 'generative' or a list that is not empty, got {members!r}")
    seen = set()
    for entry in wanted:
        if isinstance(entry, str):
            if entry not in pools:
                raise ValueError(f"members has {entry!r}; it may have {list(pools)}, and pairs (name, classifier)")
            continue
        if not (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)):
            raise ValueError(f"members has {entry!r:.100}, which is neither a name nor a pair (name, classifier)")
        name, estimator = entry
        if not name:
            raise ValueError("members has a classifier without a name: give ('name', classifier)")
        if name in {*pools, *seen, *reserved} or "__" in name:
            raise ValueError(f"members has a classifier named {name!r}, which is taken, or has '__': give another name")
        if isinstance(estimator, type):
            raise TypeError(f"members has {name!r}, the class {estimator.__name__}: give a classifier of it, by ()")
        if not all(hasattr(estimator, method) for method in ("fit", "get_params", "predict_proba")):
            raise TypeError(
                f"members has {name!r}, a {type(estimator).__name__}: a classifier with fit, get_params and "
                "predict_proba is needed"
            )
        seen.add(name)
    union = set().union(
        *(pools[entry] for entry in wanted if isinstance(entry, str)), {OutsideMember} if seen else set()
    )
    return [family for family in FAMILIES if family in union]
