"""Cold start: a fresh process that imports, fits and predicts, ours and GaussianNB."""

import statistics

from benchmarks.timing import Table, fresh, medians, told

DATA = "import numpy as np; r = np.random.default_rng(0); x = r.normal(size=(200, 4)); t = np.arange(200) % 3\n"
OURS = DATA + "from bayesgen import NaiveBayesClassifier as C; C('gaussian').fit(x, t).predict(x)\n"
PEER = DATA + "from sklearn.naive_bayes import GaussianNB as C; C().fit(x, t).predict(x)\n"
OWN = (
    "import time, sklearn.discriminant_analysis, sklearn.naive_bayes; t = time.process_time()\n"
    "from bayesgen import NaiveBayesClassifier; print(time.process_time() - t)"
)
HEAVY = ("jax", "numpyro", "arviz", "arviz_base", "arviz_stats", "matplotlib")


def run(quick: bool = False) -> list[Table]:
    """Fill the table."""
    fresh(OURS + f"import sys; loaded = set({HEAVY}) & set(sys.modules); assert not loaded, loaded")
    table = Table("Cold start", f"Our process loads none of {', '.join(HEAVY)} (checked). The floor is `import numpy`.")
    contenders = {"peer": lambda: fresh(PEER), "ours": lambda: fresh(OURS), "floor": lambda: fresh(DATA)}
    time = medians(contenders, 3 if quick else 9)
    own = statistics.median(float(told(OWN)) for _ in range(3 if quick else 9))
    table.note += f" The classifier's import beyond scikit-learn's takes {own:.2f} s of CPU time (asked: 0.1)."
    table.add("import, fit, predict", "GaussianNB", time["peer"] / time["ours"], 1, time["ours"] / time["floor"])
    return [table]
