"""The estimator of naive Bayes: one leaf for each column, or for each block of columns of one family."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.core import registry
from bayesgen.core.statistics import all_but_one, departures
from bayesgen.estimators.estimator import Held
from bayesgen.estimators.labelled import LabelledClassifier
from bayesgen.estimators.settings import class_prior, leaf_of
from bayesgen.inspection.leave_one_out import check_exact
from bayesgen.inspection.one_model import FittedModel
from bayesgen.models import NaiveBayes
from bayesgen.models.beside_constants import varying
from bayesgen.models.column_families import sparse_families
from bayesgen.numerics import tempering
from bayesgen.numerics.checks import check_positive
from bayesgen.numerics.folds import effective, sample, times
from bayesgen.numerics.pieces import select_rows
from bayesgen.tables.schema import Schema

_MOST = 1000  # rows that are left out to choose an exponent


@registry.estimator
@dataclass(eq=False, repr=False)
class NaiveBayesClassifier(LabelledClassifier):
    """Bayesian naive Bayes over any mixture of features, with missing entries at fit and prediction.

    Parameters
    ----------
    features : str or mapping, default "auto"
        "auto" (by type: float and integer columns Gaussian, bool Bernoulli, category, object and string categorical);
        or one name for all columns: "gaussian", "student" (numbers with outliers; for "map", "ml", "nuts" and
        "laplace"), "bernoulli", "categorical", "poisson" (counts), "log" (positive and skewed: the logarithm is
        Gaussian), "log1p" (the same of 1 + x, where zeros occur), "date" (as days; rows that are drawn or filled have
        dates again), "multinomial" (all columns one bag of words); or a mapping from column (or tuple of columns) to a
        leaf such as ``BetaBernoulli(2, 2)``, to one of these names, or to "drop", which leaves the column out. Columns
        that the mapping does not name are "auto". A bag of words, and heads with their tosses, are a tuple:
        ``{("cheap", "now"): "multinomial", ("heads", "tosses"): BetaBinomial(1, 1)}``; a column of sequences, texts or
        lists, is ``{"dna": MarkovChain("ACGT")}``. The priors are Dirichlet(1) and
        Beta(1, 1), whose predictive is Laplace smoothing, and the weak ones of `NormalInverseGamma`, `StudentT`,
        `LogNormal` and `GammaPoisson`.
    prior : {"weak", "reference"}, default "weak"
        Priors of the columns whose leaf is not given. "reference" takes the improper limits of
        `bayesgen.models.reference` for Gaussian columns and counts, which need two distinct values (one count) in each
        class, and Jeffreys' Beta(1/2, 1/2) and Dirichlet(1/2) for the others. There is then no evidence and no NUTS.
    class_concentration : float, array of shape (K,), or mapping or Series from class to float, default 1.0
        Dirichlet concentration of the class probabilities.
    priors : array, shape (K,), or mapping or Series from class to float, optional
        Known class probabilities, in place of learned ones; a classifier of this kind has no ``class_weight``.
    inference : {"ml", "map", "exact", "nuts", "laplace"} or Inference, default "exact"
        Method of inference. Where a leaf is not conjugate (Student-t, pooled) "exact" stands for "map", or, without a
        mode, for "laplace", told by a warning.
    unseen : {"missing", "error"}, default "missing"
        Treatment of a category at prediction that was not there at fit: integrated out, with one warning that counts
        and names such values, or refused. In ``partial_fit`` it is refused.
    exponent : float or "loo", default 1.0
        The class probabilities are in proportion to p(t = k) p(x | t = k)^exponent. Values below 1 correct naive Bayes
        for counting redundant columns more than once; "loo" chooses the exponent, under a prior, by the log score of
        exact leave-one-out, which needs all rows in one ``fit`` and ``inference="exact"``. It tempers
        ``predict_proba``, and intervals and ``explain``, which follow from it: such probabilities belong to no
        posterior and no density of x. The posterior, ``score_samples``, ``sample``, ``log_evidence_``,
        ``leave_one_out`` and ``to_arviz`` are untempered.
    random_state : int, RandomState or None
        Source of randomness for NUTS and for draws.

    Attributes
    ----------
    classes_ : array
        Class labels.
    model_ : NaiveBayes
        The model with its prior.
    statistics_ : ClassStatistics
        Sufficient statistics of the rows.
    posterior_ : Posterior
        The posterior of the parameters.
    exponent_ : float
        The exponent of the features, given or chosen.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.2], [1.2, np.nan], [3.1, 0.9], [2.9, 1.1]])
    >>> classifier = NaiveBayesClassifier().fit(X, ["a", "a", "b", "b"])
    >>> classifier.predict([[3.0, np.nan]])
    array(['b'], dtype='<U1')
    """

    fitted_ = Held(FittedModel, (NaiveBayes,), "exponent_")

    features: str | Mapping[Any, Any] = "auto"
    prior: str = "weak"
    unseen: str = "missing"
    exponent: float | str = 1.0

    def _learn_schema(self, table):
        self._check_options(unseen=("error", "missing"))
        if not isinstance(self.prior, str) or self.prior not in ("weak", "reference"):
            raise ValueError(
                f"prior must be 'weak' or 'reference' (a prior of a column is given by features=), got {self.prior!r}"
            )
        return Schema.learn(table, self.features)

    @property
    def _weak(self):
        return self.prior == "weak"

    _answers = ("bits",)

    def _template(self, schema):
        if isinstance(self.exponent, str) and self.exponent != "loo":
            raise ValueError(f"exponent must be a number > 0 or 'loo', got {self.exponent!r}")
        if self.exponent != "loo" and not (type(self.exponent) is float and 0 < self.exponent < np.inf):
            check_positive("exponent", self.exponent)
        leaves = {block.name: leaf_of(block, self.prior) for block in schema.blocks}
        return NaiveBayes(class_prior(self, self.priors), leaves, columns={b.name: b.columns for b in schema.blocks})

    def _temper(self, rows=None):
        if self.exponent != "loo":
            self.exponent_ = float(self.exponent)
        elif rows is None or rows.shared:
            raise ValueError(
                "exponent='loo' is chosen by leaving out rows of one class: give all of them to fit, or a number"
            )
        else:
            self.exponent_ = best_exponent(self, rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        mixed = not isinstance(self.features, str)
        tags.input_tags.categorical = tags.input_tags.string = mixed or self.features in ("auto", "categorical")
        tags.input_tags.sparse = mixed or self.features in sparse_families()
        tags.input_tags.positive_only = not mixed and self.features in ("poisson", "multinomial")
        return tags


def best_exponent(classifier, learned) -> float:
    """Return the exponent τ of the features that maximises the log score of rows left out, under a prior.

    It makes up for columns that say the same (`docs/mathematics/averaged.md`); the objective is in
    `bayesgen.numerics.tempering`. Where all weights are whole a row is there as often as it weighs, and leaves as one;
    else it leaves with all its weight, or with its whole group. "Weak" priors follow the rows that are left. If there
    are more than 1,000 rows a stratified sample is left out, each class weighted back to its part.
    """
    check_exact(classifier.fitted_, "an exponent is chosen by exact leave-one-out")
    codes, weight, group, rows = learned.codes, learned.weight, learned.group, learned.blocks
    weight = np.ones(len(codes)) if weight is None else weight
    counted = times(weight) is not None
    template = classifier._template(classifier.schema_)
    nothing = classifier.schema_.nothing()

    def summed(held, weight=weight):
        return template.statistics(select_rows(rows, held), codes[held], weight[held])

    places = sample(codes, _MOST, np.random.default_rng(0))
    if group is None:
        leaving = [places[i : i + 1] for i in range(len(places))]
    else:
        chosen = np.isin(group, group[places])
        leaving = [held for held in departures(len(codes), group) if chosen[held[0]]]
    others = all_but_one(summed, leaving, summed(np.delete(np.arange(len(codes)), np.concatenate(leaving))))
    density, log_prior = np.empty((2, len(codes), len(classifier.classes_)))
    for held, remaining in zip(leaving, others, strict=True):
        if group is None and counted and weight[held[0]] > 1:
            remaining = remaining + summed(held, weight - 1)
        model = template.with_prior(remaining).update(remaining)
        log_prior[held] = model.log_predictive(nothing)[0]
        density[held] = model.log_predictive(select_rows(rows, held)) - log_prior[held]
    codes, weight = codes[places], weight[places]
    whole = classifier.statistics_.classes.sums
    scored = weight * (whole / np.bincount(codes, weight, len(whole)).clip(1e-300))[codes]
    total = float(weight.sum()) if counted or group is not None else effective(weight)
    scored *= total / scored.sum()
    count = total if group is None else effective(scored, group[places])
    told = (b for b in classifier.schema_.blocks if b.categories is None or len(b.categories) > 1)
    columns = sum(len(varying(classifier.model_.leaves[b.name], b.columns)[1]) for b in told)  # not the constant ones
    mode = tempering.expected_exponent(columns, count)
    return float(tempering.exponents(density[None, places], log_prior[places], codes, scored, mode)[0])
