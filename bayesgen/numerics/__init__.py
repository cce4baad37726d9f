"""Numerics: special functions, checks, rows in pieces, sums by group, averages over draws, and searches."""
