"""What a fitted classifier tells beyond a probability: how sure it is of it, why, and how it does without each row."""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from bayesgen.boundary import discriminant
from bayesgen.models.class_conditional import ClassConditional
from bayesgen.models.gaussian_discriminant import GaussianDiscriminant
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.pieces import DENSITIES, split_rows
from bayesgen.numerics.sums import weights_of
from bayesgen.posterior import ExactPosterior, ParameterDraws, generator, tree
from bayesgen.tables.labels import class_codes, class_labels, existing


class ProbabilityDraws:
    """For every classifier: the spread of p(t = k | x, θ) over the posterior of θ, and draws as ArviZ takes them."""

    def predict_proba_draws(self, X, size: int = 1000) -> np.ndarray:
        """Class probabilities under single draws of the parameters: how sure the model is of its own probability.

        Their plain average is the predictive probability of a discriminative model, but *not* of a generative one,
        where x itself tells about θ: that is `predict_proba`.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows.
        size : int, default 1000
            Draws; of a point estimate all are the same.

        Returns
        -------
        array, shape (size, n, K)
        """
        return np.concatenate(list(self._probabilities(X, size)), axis=1)

    def predict_proba_interval(self, X, level: float = 0.9, size: int = 1000) -> np.ndarray:
        """Central posterior interval of p(t = k | x, θ), for every row and class.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows.
        level : float, default 0.9
            Posterior probability of the interval.
        size : int, default 1000
            Draws it is taken from.

        Returns
        -------
        array, shape (n, K, 2)
            Lower and upper end.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}")
        ends = [0.5 - level / 2, 0.5 + level / 2]
        intervals = [np.quantile(p, ends, axis=0) for p in self._probabilities(X, size)]
        return np.moveaxis(np.concatenate(intervals, axis=1), 0, -1)

    def _probabilities(self, X, size):
        """Yield p(t = k | x_i, θ_s) of some rows at a time, (size, rows, K)."""
        check_is_fitted(self)
        check_count("size", size)
        model, params = self.posterior_.model, self.posterior_.draws(self.random_state, (size,))
        for rows in split_rows(model.check(self._read(X)), max(1, DENSITIES // (size * len(self.classes_)))):
            density = _possible(model.log_likelihood_rows(params, rows), params)
            yield softmax(np.moveaxis(density, 1, -1), axis=-1)

    def _groups(self, draws, X, y, rng) -> dict[str, dict[str, np.ndarray]]:
        """ArviZ's groups that speak of rows and their classes; see `to_arviz`."""
        _, codes = class_codes(class_labels(y), self.classes_)
        flat, lead = draws.flat, next(iter(draws.samples.values())).shape[:2]
        shape = (math.prod(lead), len(codes))
        joint, conditional, t = np.empty(shape), np.empty(shape), np.empty(shape, int)
        done = 0
        for rows in split_rows(draws.model.check(self._read(X)), max(1, DENSITIES // shape[0])):
            density = draws.model.log_likelihood_rows(flat, rows)  # (draws, K, rows)
            part = slice(done, done := done + density.shape[-1])
            own = (slice(None), codes[part], np.arange(density.shape[-1]))
            joint[:, part] = density[own]
            density = _possible(density, flat)
            top = density.max(1)
            cumulative = np.exp(density - top[:, None]).cumsum(1)
            conditional[:, part] = density[own] - top - np.log(cumulative[:, -1])
            t[:, part] = (rng.random(top.shape) * cumulative[:, -1] > np.moveaxis(cumulative, 1, 0)).sum(0)
        likelihood = {"joint": joint} if isinstance(draws.model, ClassConditional) else {}
        likelihood |= {"conditional": conditional}
        return {
            "log_likelihood": {name: v.reshape(*lead, -1) for name, v in likelihood.items()},
            "posterior_predictive": {"t": t.reshape(*lead, -1)},
            "observed_data": {"t": codes},
        }


def _possible(density, params):
    """Log densities (draws, K, rows), the class prior where all are log 0, as in `predict_proba`."""
    lost = np.isneginf(density.max(1, keepdims=True))
    if not lost.any():
        return density
    warn_of_lost(lost.any(0).sum(), 5)
    with np.errstate(divide="ignore"):
        return np.where(lost, np.log(params["classes.probability"])[..., None], density)


def warn_of_lost(rows: int, stacklevel: int) -> None:
    """Warn of rows that no class can explain, which a plug-in estimate can make of any row."""
    message = f"{rows} rows have probability 0 under every class; they get the class prior"
    warnings.warn(message, UserWarning, stacklevel)


class Inspection(ProbabilityDraws):
    """For generative classifiers."""

    def explain(self, X):
        """What each column of a row says for each class, as terms that add.

        In naive Bayes the term of a column is log p(x_j | t = k, data), averaged over the posterior, and that of a
        block that is one observation (a bag of words, heads with tosses) stands under its block's name. In a Gaussian
        discriminant with a shared covariance it is w_kj (x_j - m_j) under the posterior mean of the weights, m the mean
        of the rows of fit, and the first term holds the score at m. Terms are centred over the classes: 0 says nothing,
        and a column that is missing says 0. The difference of two classes is a log odds.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows; complete for a Gaussian discriminant.

        Returns
        -------
        xarray.DataArray, dims (row, class, term)
            Terms "prior", then the columns. In naive Bayes the softmax over classes of their sum is `predict_proba` (of
            draws, up to their noise).

        Examples
        --------
        >>> from bayesgen import NaiveBayesClassifier
        >>> X, y = [[0.0, 1.0], [0.2, 0.0], [1.0, 1.1], [1.2, 0.1]], ["a", "a", "b", "b"]
        >>> said = NaiveBayesClassifier().fit(X, y).explain([[1.3, 0.5]])
        >>> (said.sel({"class": "b"}) - said.sel({"class": "a"}))[0].round(2).to_series().to_dict()
        {'prior': 0.0, 'x0': 6.07, 'x1': -0.01}
        """
        import xarray as xr

        rows = self._read(X)
        names, terms = self._linear_terms(rows) if isinstance(rows, np.ndarray) else self._bayes_terms(rows)
        values = np.stack(np.broadcast_arrays(*terms), axis=-1)
        known = np.isfinite(values)  # a plug-in estimate may rule a class out: -inf
        values = values - np.where(known, values, 0.0).sum(1, keepdims=True) / known.sum(1, keepdims=True).clip(1)
        labels = {"class": self.classes_.tolist(), "term": ["prior", *names]}
        return xr.DataArray(values, dims=("row", "class", "term"), coords=labels)

    def _bayes_terms(self, rows):
        """Log class probability, and by column what it adds where all others are missing."""
        nothing = self.schema_.nothing()
        blank = {name: np.repeat(v, len(next(iter(rows.values()))), axis=0) for name, v in nothing.items()}
        prior = self.posterior_.log_predictive(nothing)
        names, terms = [], [prior]
        for block in self.schema_.blocks:
            own = rows[block.name]
            if block.single or self.model_.leaves[block.name].event_dim:
                parts = {block.columns[0] if block.single else block.name: own}
            else:
                places = np.arange(own.shape[1])
                parts = {c: np.where(places == j, own, np.nan) for j, c in enumerate(block.columns)}
            names += parts
            terms += [self.posterior_.log_predictive(blank | {block.name: part}) - prior for part in parts.values()]
        return names, terms

    def _linear_terms(self, rows):
        """Score at the mean of the rows of fit, and by column what leads away from it."""
        if not isinstance(self.model_, GaussianDiscriminant) or not self.model_.shared:
            raise ValueError("explain() needs scores that are a sum over columns: naive Bayes, or shared=True")
        score = discriminant(self.posterior_, seed=self.random_state)
        draws = tuple(range(score.intercept.ndim - 1))
        weights, intercept = score.weights.mean(draws), score.intercept.mean(draws)
        centre = self.statistics_.leaves["gaussian"].sum_groups().mean
        if np.isnan(rows).any():
            raise ValueError("explain() of a Gaussian discriminant needs complete rows")
        at_centre = np.broadcast_to(intercept + weights @ centre, (len(rows), len(intercept)))
        columns = np.moveaxis(weights[None] * (rows - centre)[:, None], -1, 0)
        return self.schema_.columns, [at_centre, *columns]

    def leave_one_out(self, X, y, sample_weight=None) -> "LeaveOneOut":
        """Class probabilities of each row of the fit had it not been there, exactly: its statistics are subtracted.

        The hyperparameters stay those of the full fit ("weak" ones follow the data), and nothing is sampled. A row of
        weight w is taken out whole.

        Parameters
        ----------
        X, y, sample_weight
            The rows of the fit.

        Returns
        -------
        LeaveOneOut
        """
        check_is_fitted(self)
        if not isinstance(self.posterior_, ExactPosterior):
            raise ValueError("leave_one_out() is exact: it needs inference='exact'")
        table, y, weight = existing(self._table(X, reset=False), class_labels(y), sample_weight)
        _, codes = class_codes(y, self.classes_)
        rows = self._shape(self.schema_.read(table))
        model, whole = self.model_, self.statistics_
        counts = weights_of(codes, len(self.classes_), weight)
        if not np.allclose(counts, whole.classes.sums, rtol=1e-9):
            raise ValueError(
                f"X and y must be the rows of the fit, which had {whole.classes.sums.tolist()} rows by class; "
                f"these have {counts.tolist()}"
            )
        log_joint = np.empty((len(codes), len(self.classes_)))
        for i, row in enumerate(split_rows(rows, 1)):
            own = slice(i, i + 1)
            rest = whole - model.statistics(row, codes[own], None if weight is None else weight[own])
            log_joint[i] = model.update(rest).log_predictive(row)[0]
        return LeaveOneOut(log_joint, codes)

    def to_arviz(self, X=None, y=None):
        """Return the posterior as an ArviZ `xarray.DataTree`; an exact one is drawn, as chains.

        Parameters
        ----------
        X, y : optional
            Rows and their classes; they add the groups "log_likelihood" ("joint": log p(x_i, t_i | θ), "conditional":
            log p(t_i | x_i, θ)), "observed_data" and "posterior_predictive" ("t": codes drawn given x_i), and, where
            the prior can be drawn from, "prior" and "prior_predictive" (a row of each draw).
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("to_arviz() takes X and y together")
        if X is None:
            return self.posterior_.to_arviz(self.random_state)
        from arviz_base import from_dict

        rng = generator(self.random_state)
        posterior = self.posterior_.as_draws(rng)
        result = tree(posterior, self._groups(posterior, X, y, rng))
        if self.model_.conjugate:
            prior = ParameterDraws(self.model_, self.model_.sample_parameters(rng, (1, 1000)))
            t, x = self.model_.sample_rows({site: v[0] for site, v in prior.samples.items()}, int(rng.integers(2**31)))
            new = {"t": t, **self.schema_.write(x)}
            result["prior"] = tree(prior, name="prior")["prior"]
            result["prior_predictive"] = from_dict({"prior_predictive": {name: v[None] for name, v in new.items()}})[
                "prior_predictive"
            ]
        return result


@dataclass(frozen=True)
class LeaveOneOut:
    """Predictions of each row by all others.

    Attributes
    ----------
    log_joint : array, shape (n, K)
        Log p(x_i, t = k | all other rows).
    codes : int array, shape (n,)
        The class each row has.
    """

    log_joint: np.ndarray
    codes: np.ndarray

    @property
    def probability(self) -> np.ndarray:
        """p(t_i = k | x_i, all other rows), (n, K)."""
        return softmax(self.log_joint, axis=1)

    @property
    def joint(self) -> np.ndarray:
        """Log p(x_i, t_i | all other rows) of each row, (n,); their sum is the joint elpd."""
        return self.log_joint[np.arange(len(self.codes)), self.codes]

    @property
    def conditional(self) -> np.ndarray:
        """Log p(t_i | x_i, all other rows) of each row, (n,); minus their mean is the log loss."""
        return self.joint - logsumexp(self.log_joint, axis=1)

    @property
    def elpd(self) -> float:
        """Expected log predictive density of rows and classes: the sum of `joint`."""
        return float(self.joint.sum())

    @property
    def se(self) -> float:
        """Standard error of `elpd`: sqrt(n) times the sd over rows."""
        return float(np.sqrt(len(self.joint)) * self.joint.std(ddof=1))
