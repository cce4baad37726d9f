"""Comparison of models and inferences on the same rows, by cross-validation and by evidence. Nothing prints."""

from bayesgen.comparison.blocks import over_time
from bayesgen.comparison.cross_validation import compare, compare_models, held_out_importance, impossible_row, splits
from bayesgen.comparison.evidence import compare_evidence
from bayesgen.comparison.number_of_classes import compare_classes
from bayesgen.comparison.results import Comparison, ModelComparison, Note, Scores

__all__ = [
    "Comparison",
    "ModelComparison",
    "Note",
    "Scores",
    "compare",
    "compare_classes",
    "compare_evidence",
    "compare_models",
    "held_out_importance",
    "impossible_row",
    "over_time",
    "splits",
]
