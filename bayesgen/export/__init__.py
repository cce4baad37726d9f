"""A fitted classifier as a program that needs no Python: one plain script, which answers as `predict_proba` does."""

from bayesgen.export.script import export, script

__all__ = ["export", "script"]
