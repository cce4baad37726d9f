"""The estimator of rows whose class is not known: mixtures, latent classes, few labels, wrong labels, raters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from bayesgen.core import registry
from bayesgen.core.errors import Argument, InputError, InputTypeError, listed
from bayesgen.estimators.class_numbers import judged
from bayesgen.estimators.discriminant import GaussianDiscriminantClassifier
from bayesgen.estimators.estimator import Held, held
from bayesgen.estimators.generative import GenerativeClassifier
from bayesgen.estimators.naive_bayes import NaiveBayesClassifier
from bayesgen.inference import ML, Exact, Inference, resolve
from bayesgen.inspection.class_profiles import class_profiles, left_out, membership, separating_columns, typical_rows
from bayesgen.inspection.one_model import FittedLatent
from bayesgen.inspection.summary import Summary
from bayesgen.models import GaussianDiscriminant, LabelNoise, NaiveBayes, UnknownClasses, latent_classes
from bayesgen.models.model import Hyperparameters
from bayesgen.models.row_em import twin
from bayesgen.models.unknown_labels import CONFUSION, PartlyLabelled
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.draws import generator
from bayesgen.numerics.pieces import count_rows
from bayesgen.posterior.arviz import tree
from bayesgen.sheets.rows import fingerprint
from bayesgen.tables.findings import ANSWERS, Finding, tell
from bayesgen.tables.learned_rows import LearnedRows, codes_or_none

_TRIED = range(1, 8)  # numbers of classes that "auto" compares


@registry.estimator
@dataclass(eq=False, repr=False)
class LatentClassClassifier(GenerativeClassifier):
    """A generative classifier for rows of unknown class: without labels, with some, or with labels that may be wrong.

    As naive Bayes it is latent class analysis, with Gaussian columns a mixture of Gaussians whose columns are
    independent, and with a column for each rater the model of Dawid and Skene. As a discriminant it is a mixture of
    Gaussians with full, diagonal or isotropic covariances, one for each class or one for all.

    Parameters
    ----------
    model : {"naive bayes", "discriminant"}, default "naive bayes"
        Model of the columns given the class.
    features : str or mapping, default "auto"
        Of naive Bayes: models of the columns; see `NaiveBayesClassifier`. A leaf with ``per_class=True`` has
        hyperparameters for each class, along their first axis.
    covariance : {"full", "diagonal", "isotropic", "student"}, default "full"
        Of a discriminant: structure of the covariance matrix; see `GaussianDiscriminantClassifier`. "student", and the
        feature "student" of naive Bayes, keep outliers from moving a class, or from making one; columns must vary.
    shared : bool, default False
        Of a discriminant: True for one covariance of all classes.
    prior : "weak", "reference" or model, default "weak"
        Prior of the columns; see `NaiveBayesClassifier` and `GaussianDiscriminantClassifier`. "weak" follows the rows
        with a label where every class has some, else all rows. A class without labels needs a prior that is a
        distribution.
    classes : int, sequence or "auto", optional
        Number of classes, which are then called 0, 1, ...; or their names. By default they are the labels in ``y``.
        "auto" takes the `best` of 1 to 7 by `compare_classes`, where no row has a label.
    order_by : column, optional
        Column by whose mean, from low to high, the classes are named that have neither a label nor a prior of their
        own. By default the most frequent class is the first.
    class_concentration, priors
        As for `NaiveBayesClassifier`.
    label_noise : LabelNoise, optional
        Prior of a confusion matrix, where labels may be wrong. Then the true class of every row is unknown, and
        probabilities are of it. Every class needs labels. Searches and chains begin at the labels.
    inference : {"memberships", "ml", "map", "nuts", "laplace"} or Inference, default "memberships"
        Method of inference; where every row has a label that is right, "exact" too. By default rows count in each class
        by their memberships at the mode, and the parameters are integrated out given these, see `bayesgen.Memberships`.
        "map" and "ml" are points: what no row of a class had may have probability 0 there.
    starts : int, default 20
        Number of starts of the search for classes without labels. It ends in the best by a lower bound of the evidence,
        where all but "ml" begin; for "ml", and Student's t, in that of the highest likelihood.
    random_state : int, RandomState or None
        Source of randomness for starts, NUTS and draws.

    Attributes
    ----------
    classes_ : array
        Class labels.
    class_numbers_ : ClassNumbers
        With ``classes="auto"``, what it was chosen by.
    free_ : array
        Labels of the classes that neither a label nor the prior tells apart, and that are named by an order.
    starts_reached_ : int or None
        Number of the starts whose search ended in the best mode.
    confusion_ : array, shape (chains, draws, K, K)
        With ``label_noise``: probability of each label (last axis) in each class, for the draws of `posterior_`; of a
        point estimate, or of memberships, one: the estimate, or the mean. Else None.
    model_, statistics_, posterior_, schema_
        As for `NaiveBayesClassifier`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4.0, 1.0, 30), rng.normal(4.0, 1.0, 50)])[:, None]  # two humps
    >>> mixture = LatentClassClassifier(classes=["low", "high"], order_by=0, starts=3, random_state=0).fit(X)
    >>> mixture.predict([[-3.0], [5.0]]).tolist()
    ['low', 'high']
    """

    _narrow = True  # False where numbers of classes are compared, under the weak prior of one class for each
    fitted_ = Held(FittedLatent, (NaiveBayes, GaussianDiscriminant), "confusion_", optional=("class_numbers_",))

    model: str = "naive bayes"
    features: str | Mapping[Any, Any] = "auto"
    covariance: str = "full"
    shared: bool = False
    prior: str | Hyperparameters = "weak"
    classes: int | str | Sequence | None = None
    order_by: Any = None
    label_noise: LabelNoise | None = None
    inference: str | Inference = field(default="memberships", kw_only=True)
    starts: int = 20

    def fit(self, X, y=None, sample_weight=None, *, match_to=None) -> Self:
        """Learn from rows, and from the labels that there are.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            NaN, None or NA where missing.
        y : array, shape (n,), optional
            Class labels; NaN, None or NA where a row has none.
        sample_weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.
        match_to : fitted classifier, optional
            Another fit of the same columns: its classes name the `free_` ones, each the one whose rows agree best, in
            place of ``order_by``.
        """
        check_count("starts", self.starts)
        if match_to is not None and not hasattr(match_to, "predict_proba"):
            raise TypeError(f"match_to must be a fitted classifier, got {type(match_to).__name__}")
        with self._whole():
            rows = LearnedRows.partly(self.table(X, reset=True), y, sample_weight)
            self.classes_ = self._named(rows.classes, X, sample_weight)
            rows = rows.among(self.classes_)
            codes, known = rows.codes, rows.codes >= 0
            schema = self._learn_schema(rows.table)
            if self.label_noise is not None and len(np.unique(codes[known])) < len(self.classes_):
                raise ValueError("label_noise needs labels of every class, at which the search begins")
            rows = replace(rows, blocks=schema.read(rows.table))
            if known.all() and self.label_noise is None:
                template, statistics = self._summarise(schema, rows)
            else:
                if isinstance(resolve(self.inference), Exact):
                    unsure = "have no label" if self.label_noise is None else "have labels that may be wrong"
                    problem = f"{len(codes) if self.label_noise else (~known).sum()} rows {unsure}: their posterior is "
                    problem += "a sum over all labellings, and neither it nor the evidence has a closed form; use "
                    raise InputError(problem, Argument("inference", "memberships"), ", 'map', 'ml' or 'nuts'")
                template = self._template(schema)
                given = rows.blocks, codes, rows.weight, fingerprint(schema, self.classes_)
                statistics = UnknownClasses(template, self._confusion).statistics(*given, self._narrow)
                values = self._order(rows.table) if match_to is None else match_to.predict_proba(X)[rows.places]
                statistics = self._begun(template.with_prior(statistics), statistics, values, ~known)
            self._learn(schema, template, statistics)
            posterior: Any = self.posterior_
            if posterior.kind == "draws" and len(self.free_) > 1:  # classes of draws are named as those at the start
                samples = latent_classes.matched(self.model_, self.statistics_, posterior.samples)
                self.posterior_ = replace(posterior, samples=samples)
        self._tell_findings(rows)
        return self

    def _named(self, labels, X, sample_weight) -> np.ndarray:
        """Return the classes: as ``classes`` names or counts them, else those that have labels."""
        vars(self).pop("class_numbers_", None)
        if isinstance(self.classes, str) and self.classes == "auto":
            if len(labels) or sample_weight is not None:
                raise ValueError("classes='auto' compares numbers of classes by rows without labels and weights")
            seed = int(generator(self.random_state).integers(2**31))
            tried = {k: replace(self, classes=k, random_state=seed) for k in _TRIED}
            self.class_numbers_ = replace(judged(tried, X, seed=seed), fits={})
            return np.arange(self.class_numbers_.best)
        if (classes := self.classes) is None:
            if not len(labels):
                raise ValueError("y holds no label: give classes=, the number of the classes or their names")
            return labels
        if isinstance(classes, bool | str) or not isinstance(classes, int | np.integer | Sequence | np.ndarray):
            raise TypeError(f"classes must be their number, their names or 'auto', got {classes!r}")
        if isinstance(classes, int | np.integer):
            check_count("classes", classes)
            return np.arange(classes)
        names = np.asarray(classes)
        if names.ndim != 1 or names.dtype.kind not in "iuUO" or not len(names) or len(set(names.tolist())) < len(names):
            raise ValueError(f"classes must be distinct names, got {classes!r}")
        return names

    @property
    def _answers(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return ANSWERS if self.model == "naive bayes" else ()

    @property
    def _labelled(self) -> Any:
        """The classifier of rows with labels that are right."""
        if self.model == "discriminant":
            given = {"covariance": self.covariance, "shared": self.shared}
            made: Any = GaussianDiscriminantClassifier(**given, prior=self.prior)
        else:
            made = NaiveBayesClassifier(self.features, prior=self.prior)  # type: ignore[arg-type]  # it checks the prior
        return made.set_params(class_concentration=self.class_concentration, priors=self.priors)

    def _learn_schema(self, table):
        self._check_options(model=("naive bayes", "discriminant"))
        other = {"features": "auto"} if self.model == "discriminant" else {"covariance": "full", "shared": False}
        for name, default in other.items():
            value = getattr(self, name)
            if not isinstance(value, type(default)) or value != default:
                raise ValueError(f"{name}={value!r:.100} is no setting of model={self.model!r}")
        return self._labelled._learn_schema(table)

    def _template(self, schema):
        labelled = self._labelled
        labelled.classes_ = self.classes_
        return labelled._template(schema)

    @property
    def _weak(self):
        return self._labelled._weak

    @property
    def _confusion(self):
        """The prior of the confusion matrix, None where labels are right."""
        if not isinstance(self.label_noise, LabelNoise | None):
            raise TypeError(f"label_noise must be a LabelNoise such as LabelNoise(rate=0.1), got {self.label_noise!r}")
        return self.label_noise and self.label_noise.confusion(self.classes_.tolist())

    def _order(self, table):
        """Return the numbers of the column that orders the classes, or None."""
        if self.order_by is None:
            return None
        places = dict(enumerate(table.columns)) if isinstance(self.order_by, int) else {}
        column = places.get(self.order_by, str(self.order_by))
        if column not in table.columns:
            raise ValueError(f"order_by is no column of X: {self.order_by!r}; it has {listed(table.columns)}")
        return np.asarray(table.numbers((column,)), float)[:, 0]

    def _begun(self, model, statistics, values, unknown):
        """Return the statistics with the start of the search, where a class has no label; its classes in order."""
        if (statistics.classes.total() > 0).all():
            return statistics
        for name, leaf in twin(model).leaves.items():
            if not (leaf.conjugate and leaf.proper):
                raise InputTypeError(
                    f"columns {listed(model.columns_of(name) or (name,))}: a {type(leaf).__name__} has no posterior in "
                    "closed form under a prior that is a distribution, by which the search for classes goes; give "
                    "another leaf, or labels of every class"
                )
        lone = len(latent_classes.free(model, statistics))
        if lone > 1 and lone > (distinct := latent_classes.distinct_rows(statistics)):
            problem = f"classes: {lone} have no label, and X has {distinct} different rows without one; take fewer"
            raise InputError(problem, value=distinct)
        likelihood = isinstance(resolve(self.inference), ML)
        found = latent_classes.begun(model, statistics, self.starts, generator(self.random_state), likelihood)
        return latent_classes.ordered(model, found, None if values is None else values[unknown])

    def _infer(self, inference, model, statistics):
        self.confusion_ = None
        if not isinstance(statistics, PartlyLabelled):
            return super()._infer(inference, model, statistics)
        found: Any = super()._infer(inference, UnknownClasses(model, self._confusion), statistics)
        if isinstance(resolve(inference), ML):
            if place := latent_classes.shrunk(model, found.params):  # where a mixture's likelihood has no bound
                k, column = place
                problem = f"class {model.class_names[k]!r}, column {column!r}: the variance falls to 0 where rows "
                problem += "repeat, and there the likelihood of a mixture has no maximum; use "
                cure = Argument("inference", "map"), ", whose prior keeps variances from 0"
                raise InputError(problem, *cure, column=column)
            heights = statistics.heights
            if heights is not None and (count := int(np.isneginf(heights).sum())):  # higher, at a variance of 0
                facts = {"shrunk": count, "starts": len(heights)}
                tell([Finding("shrunk", cure=Argument("inference", "map"), facts=facts)])
        if self.label_noise is not None:
            self.confusion_ = found.mean()[CONFUSION][None, None]
            if found.kind == "draws":
                self.confusion_ = found.samples[CONFUSION]
        return _of_classifier(found, model)

    free_ = held("free_", "Classes that neither a label nor the prior tells apart, which are named by an order.")

    @property
    def starts_reached_(self) -> int | None:
        """Number of the ``starts`` whose search ended in the best mode; None where there was no choice of a start.

        One of many says that others may find a better mode: give more ``starts``.
        """
        heights = getattr(self.fitted_.statistics_, "heights", None)
        return None if heights is None else latent_classes.reached(heights)

    @property
    def log_evidence_(self) -> float:
        """Log p(rows, labels that there are), the unknown classes summed out.

        It is exact where every row has a label, and for up to 12 rows without any. Else it is what
        ``inference="laplace"`` estimates at one mode, times the number of ways to rename the `free_` classes, as many
        modes as there are: too small where the posterior has others that are worth as much. With one class it is exact.
        """
        return self.fitted_.log_evidence_

    class_profiles, membership, separating_columns = class_profiles, membership, separating_columns
    typical_rows = typical_rows

    def leave_one_out(self, X=None, y=None, sample_weight=None, groups=None):
        if X is None and y is None and isinstance(getattr(self, "statistics_", None), PartlyLabelled):
            if self.confusion_ is not None:
                raise ValueError(
                    "leave_one_out() without rows is not for label_noise: use ArviZ's loo of to_arviz(X, y)"
                )
            return left_out(self)
        return super().leave_one_out(X, y, sample_weight, groups)

    posterior_with_labels_ = held("posterior_with_labels_", "Posterior of classes, and with ``label_noise`` of labels.")

    def to_arviz(self, X=None, y=None, draws: int | None = None):
        """Return the posterior as an ArviZ `xarray.DataTree`.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns), optional
            Rows. They add the group "log_likelihood" with "x", log p(x_i | θ) summed over the classes: ArviZ's ``loo``
            and ``compare`` of it judge the number of classes by rows left out.
        y : array, shape (n,), optional
            Labels as at fit: then "x" is log p(x_i, s_i | θ) of the rows that have a label s_i.
        draws : int, optional
            Number of draws, evenly apart in each chain; default: all.
        """
        posterior = self.posterior_with_labels_.thinned(draws)
        if X is None:
            return tree(posterior)
        rows, lead = self.model_.check(self.fitted_.read(X)), next(iter(posterior.samples.values())).shape[:2]
        codes = codes_or_none(y, self.classes_, count_rows(rows))
        density = posterior.model.log_likelihood_rows(posterior.flat, posterior.model.beside(rows, codes))
        total = np.logaddexp.reduce(density, axis=1)
        if self.confusion_ is None:
            total[:, codes >= 0] = density[:, codes[codes >= 0], np.flatnonzero(codes >= 0)]
        return tree(posterior, {"log_likelihood": {"x": total.reshape(*lead, -1)}})

    def summary(self) -> Summary:
        """Return what was learned, by column and class, with the intervals of `class_profiles`.

        With ``label_noise`` it has how often each class has each label, and no intervals; as where there are no draws.
        """
        shown = super().summary()
        if not isinstance(self.statistics_, PartlyLabelled):
            return shown
        if self.confusion_ is None:
            try:
                profiles = self.class_profiles()
            except ValueError:  # a point estimate of Student's t
                return shown
            ends = profiles.drop(columns="mean", level=1).to_numpy().reshape(len(profiles), -1, 2)
            return replace(shown, intervals=dict(zip(profiles.index, ends, strict=True)))
        mean, first = self.confusion_.mean((0, 1)), ("class", "probability")
        labelled = {("class", f"labelled {c}"): p for c, p in zip(self.classes_.tolist(), mean.T, strict=True)}
        return replace(shown, values={first: shown.values[first], **labelled, **shown.values})


def _of_classifier(posterior: Any, model) -> Any:
    """Return a posterior of unknown classes as one of the classifier alone, whose parameters it has too."""
    if posterior.kind == "memberships":
        learned = {name: posterior.model.leaves[name] for name in model.leaves}
        return replace(posterior, model=model.with_leaves(posterior.model.classes, learned))
    name = "params" if posterior.kind == "point" else "samples"
    kept = {site: v for site, v in getattr(posterior, name).items() if site != CONFUSION}
    warmup = getattr(posterior, "warmup", None)
    changed = {} if warmup is None else {"warmup": _of_classifier(warmup, model)}
    return replace(posterior, model=model, **{name: kept}, **changed)
