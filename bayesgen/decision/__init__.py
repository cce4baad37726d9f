"""Decisions from class probabilities, given what mistakes cost; and the checks of classes, probabilities and losses."""

from bayesgen.decision.losses import (
    act,
    cross_entropy,
    decide,
    expected_loss,
    ranked_loss,
    risk,
    squared_loss,
    threshold,
    zero_one,
)
from bayesgen.decision.outcomes import ASK, NONE_OF_THESE, REJECT

__all__ = [
    "ASK",
    "NONE_OF_THESE",
    "REJECT",
    "act",
    "cross_entropy",
    "decide",
    "expected_loss",
    "ranked_loss",
    "risk",
    "squared_loss",
    "threshold",
    "zero_one",
]
