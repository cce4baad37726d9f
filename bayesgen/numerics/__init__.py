"""Numbers: special functions and sums that keep their digits, on NumPy and JAX arrays alike."""
