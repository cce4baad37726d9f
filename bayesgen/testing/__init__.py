"""The laws that every leaf and model obeys, for authors of leaves."""

from bayesgen.testing.check import BrokenLaws, check_leaf

__all__ = ["BrokenLaws", "check_leaf"]
