"""The laws that every leaf and model obeys, for authors of leaves, and simulation-based calibration."""

from bayesgen.testing.calibration import Calibration, check_calibration
from bayesgen.testing.check import BrokenLaws, check_leaf

__all__ = ["BrokenLaws", "Calibration", "check_calibration", "check_leaf"]
