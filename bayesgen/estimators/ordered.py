"""Regression of ordered classes as a classifier."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.core import registry
from bayesgen.core.errors import listed, warn
from bayesgen.estimators.estimator import Held
from bayesgen.estimators.linear_classifiers import RowsClassifier
from bayesgen.inspection.fitted import FittedScores
from bayesgen.models.ordered_regression import OrderedRegression
from bayesgen.tables.learned_rows import ordered_classes


@registry.estimator
@dataclass(eq=False, repr=False)
class OrderedClassifier(RowsClassifier):
    """Bayesian regression of ordered classes: a score cut into intervals, P(class k or lower) = F(cut_k - x coef).

    It is the cumulative logit model (proportional odds), or the cumulative probit model. Coefficients ~ Normal(0,
    prior_scale), for columns standardised as by `LogisticClassifier`; the cut points are K - 1 draws of Normal(0,
    intercept_scale), sorted. With two classes it is `LogisticClassifier` or `ProbitClassifier`.

    Three or more text labels need an order, from lowest to highest: of ``order``, of an ordered Categorical of pandas,
    or of ``classes`` in `fit`. Numbers are in order. Give numbers where scikit-learn encodes labels by the alphabet
    before it hands them on: in `VotingClassifier`, `BaggingClassifier`, `StackingClassifier`,
    `CalibratedClassifierCV(ensemble=False)` and `cross_val_predict` of probabilities.

    Parameters
    ----------
    prior_scale, intercept_scale : float, default 2.5
        Prior standard deviations of the coefficients and, before they are sorted, of the cut points: in log odds, or
        normal standard deviations (per standard deviation of a column, per step from 0 to 1 of a column of these).
    standardize : bool, default True
        True if the scales hold for standardised columns; False takes the columns as they are. Reported coefficients
        always belong to the columns as given.
    inference : {"ml", "map", "nuts", "laplace"} or Inference, default "nuts"
        Method of inference; see `LogisticClassifier`. "map" and "ml" need rows of every class between two others.
    missing, unseen, random_state
        As for `LogisticClassifier`.
    link : {"logistic", "probit"}, default "logistic"
        F, the distribution function of the noise. Coefficients of the probit are some 0.6 times those of the other.
    order : sequence, optional
        Every class, from lowest to highest. `compare_models` splits labels as an array, which knows no categories.

    Attributes
    ----------
    classes_ : array, shape (K,)
        Class labels from lowest to highest, the order of the columns of `predict_proba`. scikit-learn's own metrics
        sort labels: take those of `bayesgen.evaluation` with ``labels=classifier.classes_``.
    coef_ : array, shape (D,)
        Posterior mean, or point estimate, of the coefficients, per unit of the columns as given: where positive, larger
        values mean higher classes. Under the logistic link exp(coef) is the odds ratio of every "higher than k".
    cuts_ : array, shape (K - 1,)
        The same of the cut points, increasing.
    schema_, model_, statistics_, posterior_, centre_, scale_
        As for `LogisticClassifier`.

    Examples
    --------
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0]], ["low", "low", "middle", "high", "middle"]
    >>> classifier = OrderedClassifier(order=["low", "middle", "high"], inference="map").fit(X, y)
    >>> classifier.predict_proba([[1.5], [4.5]]).round(3)
    array([[0.737, 0.229, 0.034],
           [0.103, 0.439, 0.458]])
    >>> classifier.coef_.round(2), classifier.cuts_.round(2)
    (array([1.06]), array([2.63, 4.96]))
    """

    fitted_ = Held(FittedScores, (OrderedRegression,), "cuts_")

    link: str = "logistic"
    order: Any = None

    def _declared(self, classes, y=None, sample_weight=None, found=()):
        given = self.order if classes is None else classes
        given = _categories(y, sample_weight) if given is None else given
        return None if given is None else ordered_classes(given, found)

    def _check_classes(self, classes):
        super()._check_classes(classes)
        labels = self.classes_.tolist()
        if classes is None and self.order is None and len(labels) > 2 and isinstance(labels[0], str):
            raise ValueError(
                f"nobody has said in which order the classes {listed(labels)} are: give OrderedClassifier(order=[...]),"
                " from lowest to highest, or an ordered Categorical of pandas"
            )

    def _model(self, scales, classes, columns):
        return OrderedRegression(scales, self.intercept_scale, classes=classes, columns=columns, link=self.link)

    @np.errstate(under="ignore")
    def _undo(self, sites):
        coefficients = sites["coefficients"] / self.scale_
        return {"cuts": sites["cuts"] + (coefficients @ self.centre_)[..., None], "coefficients": coefficients}

    def _tell(self, sites):
        self.coef_, self.cuts_ = sites["coefficients"], sites["cuts"]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # where classes have no order, one score cannot tell them apart
        return tags


def _categories(y, weight):
    """Return the categories, in their order, that rows of weight > 0 of an ordered Categorical hold; else None."""
    if getattr(getattr(y, "dtype", None), "ordered", None) is not True:
        return None
    present = set(y) if weight is None else {label for label, w in zip(y, weight, strict=False) if w > 0}
    if absent := [label for label in y.dtype.categories if label not in present]:
        warn(
            f"no row has the levels {listed(absent)} of y, and they are no classes of this fit: "
            f"order={list(y.dtype.categories)!r:.200} keeps them, y.cat.remove_unused_categories() drops them unasked"
        )
    return [label for label in y.dtype.categories if label in present]
