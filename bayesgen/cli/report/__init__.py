"""Output of the commands: lines and tables for the terminal, JSON, pictures, and a page of it all."""

from bayesgen.cli.report.page import FILES, write
from bayesgen.cli.report.pictures import GALLERY, Asked, draw_evidence, save_figure
from bayesgen.cli.report.run import Account, ByClass, Worth
from bayesgen.cli.report.terminal import (
    consoles,
    escape,
    say,
    tell_classes,
    tell_evidence,
    tell_importance,
    tell_models,
    tell_reading,
    tell_result,
    tell_scores,
    tell_single,
    tell_table,
    tell_times,
)
from bayesgen.cli.report.words import base_rate, in_options

__all__ = [
    "FILES",
    "GALLERY",
    "Account",
    "Asked",
    "ByClass",
    "Worth",
    "base_rate",
    "consoles",
    "draw_evidence",
    "escape",
    "in_options",
    "save_figure",
    "say",
    "tell_classes",
    "tell_evidence",
    "tell_importance",
    "tell_models",
    "tell_reading",
    "tell_result",
    "tell_scores",
    "tell_single",
    "tell_table",
    "tell_times",
    "write",
]
