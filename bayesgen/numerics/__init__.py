"""Numbers: special functions, checks, pieces of rows, sums by group, and the searches that regressions need."""
