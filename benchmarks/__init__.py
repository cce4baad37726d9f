"""Speed against the peers, as ratios; `python -m benchmarks` runs all."""
