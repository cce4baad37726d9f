r"""Judge each number of classes by rows that it was not fitted to, and by its evidence.

For each number K, of n rows with memberships r_ik and P free parameters:

- *held out*: the mean over all rows of log p(x_i | the rows of other folds), and its standard error. It is one
  functional for every K: the predictive density with the parameters integrated out, where the rows of the other folds
  count in each class by their memberships at the mode (`bayesgen.inference.memberships`), under the weak prior of one
  class (`docs/mathematics/latent-classes.md`). With one class it is exact. There is no probability of 0. Where the
  other folds have fewer different rows than classes they are fitted with as many classes as different rows. Under "ml"
  it is the density at the maximum for every K, -inf where a row has what no row of the other folds had; of Student's t,
  which has no closed form, that at the mode;
- *log evidence*: log p(rows | K), exact for few rows, else estimated by draws about the best mode with importance
  weights (`bayesgen.models.latent_classes`), which miss modes of another kind (`docs/mathematics/latent-classes.md`);
- *BIC* and *ICL*, smaller is better (Schwarz 1978; Biernacki, Celeux and Govaert 2000), at the highest likelihood L̂:

.. math:: \mathrm{BIC} = -2 \log \hat L + P \log n, \qquad
   \mathrm{ICL} = \mathrm{BIC} - 2 \sum_{ik} r_{ik} \log r_{ik}

- *entropy*: 1 + Σ r_ik log r_ik / (n log K), 1 where every membership is certain, 0 where none is known at all.
"""

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import xlogy
from sklearn.base import clone

from bayesgen.core import registry
from bayesgen.core.errors import InputError, counted, listed
from bayesgen.inference import MAP, Memberships, resolve
from bayesgen.models import UnknownClasses, latent_classes
from bayesgen.models.beside_constants import BesideConstants
from bayesgen.models.unknown_labels import PartlyLabelled
from bayesgen.numerics.draws import LARGEST_K
from bayesgen.tables.table import Table

_EMPTY = 1.0  # rows, at or below which a class is nearly empty, and its number is no candidate
_classes = functools.partial(counted, what="class")


@registry.saveable
@dataclass(frozen=True, eq=False, repr=False)
class ClassNumbers:
    """Numbers of classes side by side."""

    numbers: tuple[int, ...]  # the K numbers of classes
    density: np.ndarray  # (n, K): log density of each row under the fit to the other folds
    facts: dict[str, np.ndarray]  # (K,): the other columns of `table`
    remarks: dict[int, str]  # why a number could not be fitted, or why its evidence is not to be trusted
    fits: dict[int, Any] = field(default_factory=dict)  # of all rows; empty in an estimator, which is one of them

    def __post_init__(self):
        shapes = {self.density.shape[1:], *(np.shape(values) for values in self.facts.values())}
        if shapes != {(len(self.numbers),)}:
            raise ValueError(f"ClassNumbers: {len(self.numbers)} numbers of classes have values of shapes {shapes}")

    @property
    def log_density(self) -> pd.DataFrame:
        """Log density of each row under the fit to the other folds, by number of classes."""
        return pd.DataFrame(self.density, columns=list(self.numbers))

    @property
    def table(self) -> pd.DataFrame:
        """A row for each number of classes, the highest held-out log density first.

        Columns: "log_density" of a held-out row with its "standard_error"; "difference" from the first on the same
        rows, with its "difference_error"; "log_evidence" with its "evidence_error"; "bic" and "icl"; "entropy";
        "smallest", the rows of the smallest class; "starts_reached", the starts that ended in the best mode.
        """
        held: Any = self.log_density
        scores = {"log_density": held.mean(skipna=False), "standard_error": held.sem(skipna=False)}
        frame = pd.DataFrame(scores).assign(**_apart(held), **self.facts).rename_axis("classes")
        return frame.sort_values("log_density", ascending=False, kind="stable")

    @property
    def _candidates(self) -> Any:
        """Differences of the numbers all of whose classes have more than a row; of all, where there is none such."""
        held, full = self.log_density, ~(self.facts["smallest"] <= _EMPTY)
        judged = full & ~held.isna().any().to_numpy()
        return _apart(held.loc[:, judged] if judged.any() else held)

    @property
    def best(self) -> int:
        """The fewest classes whose held-out log density is within one standard error of the highest.

        A number with a class of one row or less is no candidate.
        """
        table = self._candidates
        return int(min(table.index[-table["difference"] <= table["difference_error"]]))

    @property
    def sentence(self) -> str:
        """Say what the table bears out, and what it does not."""
        table: Any = self.table
        apart, best = self._candidates, self.best
        near = sorted(apart.index[-apart["difference"] <= 2 * apart["difference_error"]])
        top = int(apart["difference"].idxmax())
        text = f"{_classes(top)} predict rows left out best"
        if best != top:
            text += f", and {_classes(best)}, within one standard error of that, are the fewest that do about as well"
        text += f"; by two standard errors the rows do not tell {listed(near)} apart" if len(near) > 1 else ""
        if not near[-1] < max(table.index) and len(table) > 1:
            text += ". The largest number tried is among them: try more"
        if empty := sorted(k for k in table.index.difference(apart.index) if table.loc[k, "smallest"] <= _EMPTY):
            text += f". A class of {listed(empty)} has one row or less: no candidate"
        return f"{text}{self._by_evidence(table['log_evidence'].dropna(), best)}."

    def _by_evidence(self, evidence, best: int) -> str:
        """Say what the evidence bears out, and where it and the rows left out disagree."""
        if evidence.size < 2:
            return ""
        first, text = int(evidence.idxmax()), ""
        if (known := evidence.drop(list(self.remarks), errors="ignore")).size > 1:
            chance = np.exp(known - np.logaddexp.reduce(known))
            likely, told = int(chance.idxmax()), "more than 0.99" if chance.max() > 0.995 else f"{chance.max():.2f}"
            text = f". Of the numbers whose evidence counts {_classes(likely)} have probability {told}"
            text += ", if all were as probable before"
            text += "" if likely == best else f", and {_classes(best)} are best by rows left out: the two disagree"
        if first in self.remarks:
            text += f". The highest evidence is that of {_classes(first)}, but it is in doubt"
        return text

    def __repr__(self):
        remarks = [f"{_classes(number)}: {remark}" for number, remark in self.remarks.items()]
        return "\n".join([self.table.round(3).to_string(), self.sentence, *remarks])

    def _repr_html_(self):
        return self.table.round(3).to_html() + f"<p>{self.sentence}</p>"


def _apart(held: Any) -> Any:
    """Return by how much densities (n, K) differ from those of the best number, in the mean, with standard errors."""
    first = held[held.mean(skipna=False).idxmax()]
    apart = held.sub(first, axis=0).mask(held.eq(first, axis=0), 0.0)  # of -inf too
    return pd.DataFrame({"difference": apart.mean(skipna=False), "difference_error": apart.sem(skipna=False)})


def judged(
    estimators: Mapping[int, Any],
    X,
    folds: int = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> ClassNumbers:
    """Fit an estimator of each number of classes to all rows and without each fold; see `compare_classes`."""
    from joblib import Parallel, delayed
    from sklearn.model_selection import KFold

    if isinstance(X, pd.DataFrame):  # every fold is to know all categories of a column of text
        text = [name for name in X.columns if X[name].dtype == object or isinstance(X[name].dtype, pd.StringDtype)]
        X = X.astype(dict.fromkeys(text, "category"))
    count = len(Table(X))
    if not isinstance(folds, int | np.integer) or not 2 <= folds <= count:
        raise ValueError(f"folds must be a whole number from 2 to the {count} rows, got {folds!r}")
    held = [test for _, test in KFold(folds, shuffle=True, random_state=seed).split(np.empty(count))]
    tasks = [(number, places) for number in estimators for places in (None, *held)]
    work = (delayed(_fitted)(estimators[number], X, places, seed) for number, places in tasks)
    results: Any = Parallel(n_jobs=n_jobs, return_as="generator")(work)
    density = pd.DataFrame(np.nan, index=np.arange(count), columns=list(estimators))
    facts, fits, remarks, failures = {}, {}, {}, []
    for done, ((number, places), found) in enumerate(zip(tasks, results, strict=True), 1):
        if isinstance(found, ValueError):
            remarks[number] = str(found)
            failures.append(found)
        elif places is None:
            fits[number], facts[number], doubt = found
            if doubt:
                remarks.setdefault(number, doubt)
        else:
            density.loc[places, number] = found
        if progress is not None:
            progress(done, len(tasks), f"{_classes(number)}, {'all rows' if places is None else 'rows left out'}")
    density.loc[:, [number for number in estimators if number not in fits]] = np.nan
    if density.isna().any().all():
        raise failures[0]
    every = pd.DataFrame.from_dict(facts, orient="index").reindex(list(estimators)).astype(float)
    columns = {str(name): values.to_numpy() for name, values in every.items()}
    return ClassNumbers(tuple(estimators), density.to_numpy(), columns, remarks, fits)


def _fitted(estimator, X, places, seed: int) -> Any:
    """Return the fit of all rows with its facts, or the log density of the rows at ``places`` given the others."""
    rows = X.iloc if isinstance(X, pd.DataFrame) else np.asarray(X)
    fresh: Any = clone(estimator)  # the fit of all rows stays as it is
    try:
        with warnings.catch_warnings():
            if places is not None:
                warnings.simplefilter("ignore")  # the fit of all rows has told
                kept, fresh._narrow = np.delete(np.arange(len(X)), places), False
                if isinstance(resolve(fresh.inference), MAP):
                    fresh.set_params(inference=Memberships())
                try:
                    fresh.fit(rows[kept])
                except InputError as error:  # the other folds have fewer different rows: as many classes as these
                    if error.column is not None or not isinstance(error.value, int):
                        raise
                    fresh.set_params(classes=error.value).fit(rows[kept])
                return fresh.score_samples(rows[places])
        fitted = fresh.fit(X)
        facts, doubt = _facts(fitted, X, seed)
    except ValueError as error:
        return error
    return fitted, facts, doubt


def _facts(fitted, X, seed: int) -> tuple[dict[str, Any], str]:
    """Return the facts of a fit by name, and why its evidence is not to be trusted, or ""."""
    member = fitted.predict_proba(X)
    count, classes = member.shape
    uncertain = -xlogy(member, member).sum()
    level, parameters = _highest(fitted)
    bic = -2 * level + parameters * np.log(count)
    smallest = float(getattr(fitted.statistics_, "sizes", fitted.statistics_.classes.total()).min())
    log_evidence, error, doubt = _evidence(fitted, seed)
    if smallest <= _EMPTY:
        doubt = "a class is nearly empty, and its evidence is not to be trusted"
    return {
        "log_evidence": log_evidence,
        "evidence_error": error,
        "bic": bic,
        "icl": bic + 2 * uncertain,
        "entropy": 1 - uncertain / (count * np.log(classes)) if classes > 1 else 1.0,
        "smallest": smallest,
        "starts_reached": fitted.starts_reached_ or fitted.starts,
    }, doubt


def _highest(fitted) -> tuple[float, int]:
    """Return the highest likelihood of the rows, NaN where there is none, and the number of free parameters."""
    model, statistics = fitted.model_, fitted.statistics_
    unknown = UnknownClasses(model)
    parameters = sum(_free(model, site, v[0]) for site, v in fitted.posterior_.draws(0, (1,)).items())
    try:
        if not isinstance(statistics, PartlyLabelled):  # one class
            return float(model.log_likelihood(model.ml(statistics), statistics)), parameters
        rng = np.random.default_rng(0)
        begun = latent_classes.begun(model, statistics, fitted.starts, rng, likelihood=True)
        found = unknown.ml(begun)
    except ValueError:
        return np.nan, parameters
    shrunk = latent_classes.shrunk(model, found)
    return np.nan if shrunk else float(unknown.log_likelihood(found, begun)), parameters


def _free(model, site: str, value: np.ndarray) -> int:
    name, _, parameter = site.rpartition(".")
    if name == model.CLASSES:
        return value.size - 1
    leaf = model.leaves[name]
    if parameter == "cholesky" or (isinstance(leaf, BesideConstants) and not leaf.kept):
        return 0
    axes = leaf.site_dims.get(parameter, ())
    if parameter == "covariance":
        return value.size * (value.shape[-1] + 1) // (2 * value.shape[-1])
    return value.size * (value.shape[-1] - 1) // value.shape[-1] if parameter == "probability" and axes else value.size


def _evidence(fitted, seed: int) -> tuple[float, float, str]:
    """Return the log evidence, its standard error (0 where it is exact), and why it is not to be trusted, or ""."""
    model, statistics = fitted.model_, fitted.statistics_
    if not model.conjugate:  # Student's t
        level, run = getattr(fitted, "log_evidence_", np.nan), getattr(fitted.posterior_, "run", None) or {}
        doubt = "" if np.isfinite(level) else "inference='laplace' estimates its evidence"
        return level, run.get("log_evidence_error", np.nan), doubt
    if not isinstance(statistics, PartlyLabelled):
        return fitted.log_evidence_, 0.0, ""
    exact = latent_classes.log_evidence(model, statistics)
    if exact is not None:
        return exact, 0.0, ""
    found = latent_classes.weighted_draws(model, statistics, np.random.default_rng(seed))
    doubt = "its evidence may be too small, since few draws have most of the weight"
    return found.log_evidence, found.error, doubt if found.pareto_k > LARGEST_K else ""
