"""Peak memory of predicting 1e5 rows of 10 columns by 4000 draws, below 1 GB: `python benchmarks/memory.py`."""

import resource
import time

import numpy as np

from bayesgen import GaussianDiscriminantClassifier

ROWS, COLUMNS, CLASSES = 100_000, 10, 3


def peak() -> float:
    """Largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=500)
    classifier = GaussianDiscriminantClassifier(random_state=0).fit(rng.normal(size=(500, COLUMNS)) + y[:, None], y)
    classifier.posterior_ = classifier.posterior_.as_draws(0)  # 4000 draws, as NUTS would give
    x = rng.normal(size=(ROWS, COLUMNS))
    before, start = peak(), time.time()
    probability = classifier.predict_proba(x)
    assert probability.shape == (ROWS, CLASSES) and np.isfinite(probability).all()
    print(f"{time.time() - start:.0f} s; peak {peak():.0f} MB, of which {peak() - before:.0f} MB for the prediction")
    return 0 if peak() < 1000 else 1


if __name__ == "__main__":
    raise SystemExit(main())
