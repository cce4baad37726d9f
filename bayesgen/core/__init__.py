"""Foundations: JAX imported on first use, records, statistics, errors, and the version of the package."""

__version__ = "0.2.0"
