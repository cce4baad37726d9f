"""Numbers: checks, pieces, sums, and the searches that regressions need."""
