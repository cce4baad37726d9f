"""Averages of tempered conjugate members, chosen by exact leave-one-out: the algebra, in NumPy and SciPy alone."""
