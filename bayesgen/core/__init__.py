"""What every room stands on: JAX at its first use, records, statistics, errors."""
