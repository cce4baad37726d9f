"""The list of the families of members; products and summaries follow its order."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bayesgen.averaging.categories import CategoryMember
from bayesgen.averaging.gaussian import GaussianMember
from bayesgen.averaging.member import Member
from bayesgen.averaging.mixture import MixtureMember
from bayesgen.averaging.softmax import SoftmaxMember
from bayesgen.core.registry import earlier

FAMILIES: list[type[Member]] = [GaussianMember, MixtureMember, CategoryMember, SoftmaxMember]

_OF_0_2_0 = ("numeric", "categorical", "discriminative")


@earlier("Average")
def of_earlier(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of an `Average` from those in a file of version 0.2.0, which named the parts by family."""
    fields = {"leaves": None} | dict(fields)
    if not {*_OF_0_2_0} <= fields.keys():
        return fields
    numeric, *others = (fields[name] for name in _OF_0_2_0)

    def renewed(view):
        count = view.view.count
        if count == 1:
            return view
        strengths = [(m.structure, m.rho, m.kappa, m.shrinkage) for m in view.members]
        return replace(view, members=tuple(MixtureMember(*own, most=count) for own in strengths))

    parts = (*map(renewed, numeric), *(part for part in others if part is not None))
    return {"parts": parts, "given": None} | {name: v for name, v in fields.items() if name not in _OF_0_2_0}
