"""Pictures: functions that draw on matplotlib Axes and return them. Matplotlib is imported when one is drawn."""

from bayesgen.plot.probability import probabilities, reliability

__all__ = ["probabilities", "reliability"]
