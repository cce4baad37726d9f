"""Public functions and inferences have an example in their docstring, which runs, or are in the list of the others."""

import importlib
import inspect
import re
from pathlib import Path

from bayesgen.inference.base import INFERENCES

API = Path(__file__).parent.parent / "docs" / "api.md"

# Those without an example: the list may only become shorter.
WITHOUT = {
    "bayesgen": "Exact MAP ML NUTS",
    "bayesgen.models.leaf": "hyperparameter",
    "bayesgen.models.model": "is_conjugate",
    "bayesgen.models.structures": "structure",
    "bayesgen.plot": "agreement along_line beta_densities boundaries calibration calibration_over_time "
    "class_conditionals class_probabilities confusion decision_regions gaussian importance learning_curves "
    "mean_and_predictive models net_benefit predictive_densities probabilities regression reliability running_score "
    "squashing watch",
}


def documented():
    """Yield module and name of every function and class that the API reference lists."""
    module = ""
    for line in API.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: ([\w.]+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   (\w+)", line):
            yield module, found[1]


def test_public_functions_and_inferences_have_an_example_but_for_these():
    every = list(documented())
    assert ("bayesgen.plot", "reliability") in every and len(every) > 120
    lacking: dict[str, set[str]] = {}
    for module, name in every:
        found = getattr(importlib.import_module(module), name)
        if (inspect.isfunction(found) or found in INFERENCES.values()) and ">>>" not in (found.__doc__ or ""):
            lacking.setdefault(module, set()).add(name)
    assert lacking == {module: set(names.split()) for module, names in WITHOUT.items()}
