r"""What missing values probably are: means, modes and draws of p(missing | observed, data).

.. math:: p(x_m \mid x_o) = \sum_k p(t = k \mid x_o)\, p(x_m \mid t = k, x_o)

averaged over the posterior; with the class known it is the one of its terms. A draw is of the parameters first, one for
all rows, and of classes and entries given them: repeated, that is multiple imputation (Rubin 1987, *Multiple Imputation
for Nonresponse in Surveys*). The rows of a fit by NUTS may have gaps themselves: given their classes and the draws of
the parameters, what is drawn here are draws of their missing entries' posterior.
"""

import numpy as np
from scipy.special import softmax

from bayesgen.averaging import columns, missing
from bayesgen.inspection.averaged import refuse_far
from bayesgen.inspection.gaps import Components, gaps_of, refuse_totals
from bayesgen.inspection.joint import SingleJoint, joint_of
from bayesgen.numerics.pieces import DENSITIES, count_rows, pieces, select_rows
from bayesgen.posterior import generator
from bayesgen.tables.labels import class_codes, class_labels

_DRAWS = 500  # of the parameters, for means where the posterior is draws


def impute(classifier, X, y=None, draws: int = 0):
    """Fill the missing entries of rows: by what is most to be expected, or with draws.

    Without draws a number or a count is its mean (of a log-normal column exp of the mean logarithm, as a mean need not
    exist), a category or a bit the most probable one; of an averaged classifier, whose columns are bent, a number is
    its median. Gaps are taken as ignorable: that an entry is missing says nothing of its value.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        Whose joint density is asked, untempered.
    X : DataFrame or array, shape (n, columns)
        Rows.
    y : array, shape (n,), optional
        Classes of the rows, where they are known, as those of the fit are.
    draws : int, default 0
        How many tables to draw; each has parameters of its own.

    Returns
    -------
    DataFrame or array, shape (n, columns), or a list of ``draws`` of them
        A DataFrame, with the index of X, where the fit had column names. What was seen is as it was, but that dates
        are of the type datetime64, in UTC.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = GaussianDiscriminantClassifier(random_state=0).fit(X, y)
    >>> row = [[6.0, 2.7, np.nan, 1.6]]
    >>> impute(classifier, row).round(1)
    array([[6. , 2.7, 4.8, 1.6]])
    >>> [float(table[0, 2].round(1)) for table in impute(classifier, row, draws=2)]
    [4.7, 4.8]
    """
    joint = joint_of(classifier, "impute()")
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 0:
        raise ValueError(f"draws must be a whole number >= 0, got {draws!r}")
    codes = None
    if y is not None:
        codes = class_codes(class_labels(y), classifier.classes_)[1]
    rows, rng = joint.read(X), generator(classifier.random_state)
    count = count_rows(rows)
    if codes is not None and len(codes) != count:
        raise ValueError(f"X has {count} rows and y has {len(codes)}; they must be of one length")
    single = isinstance(joint, SingleJoint)
    refuse_totals(joint, "impute()", rows)
    if not single:
        refuse_far(classifier, rows["numbers"], "impute()")
    if not draws:
        return _table(classifier, X, (_expected if single else _expected_of_average)(joint, rows, codes), single)
    filled = (_drawn if single else _drawn_of_average)(joint, rows, codes, draws, rng)
    return [_table(classifier, X, own, single) for own in filled]


def _table(classifier, X, rows, single: bool):
    """Rows in the form of the fit, with the index of X."""
    if not single:
        c = rows["categories"].astype(np.intp)
        rows = columns.blocks(classifier.schema_, rows["numbers"], c, classifier.constant_)
    result = classifier._like_fit(classifier.schema_.write(rows))
    if hasattr(result, "index") and hasattr(X, "index") and not callable(X.index):
        result.index = X.index
    return result


def _expected(joint, rows, codes):
    components, schema = Components(joint, _DRAWS), joint.classifier.schema_
    result = {name: v.copy() for name, v in rows.items()}
    flat = {name: v.reshape(len(v), -1) for name, v in result.items()}
    width = components.count * len(joint.log_prior) * max(v.shape[1] for v in flat.values())
    incomplete = np.flatnonzero(sum(np.isnan(v).any(1) for v in flat.values()))
    for piece in pieces(len(incomplete), width, DENSITIES):
        own = incomplete[piece]
        part = select_rows(rows, own)
        score = components.log_weight(part)
        if codes is not None:
            score = np.where(np.arange(score.shape[1])[:, None] == codes[own], score, -np.inf)
        weight = softmax(score, axis=(0, 1))
        students = {}
        for gap in gaps_of(schema, part):
            at = own[gap.rows]
            if components.is_number(gap.block):
                if gap.block not in students:
                    location = components.student(gap.block, part)[0]
                    mean = np.einsum("skn,skn...->n...", weight, location + 0 * weight[..., None])
                    students[gap.block] = components.model.leaves[gap.block].back(mean)
                flat[gap.block][at, gap.place] = students[gap.block][gap.rows, gap.place]
            else:
                table = components.table(gap)
                chance = np.einsum("skn,skv->nv", weight[..., gap.rows], np.exp(table.log_mass))
                label = components.is_label(gap.block)
                flat[gap.block][at, gap.place] = (
                    table.values[chance.argmax(1)] if label else chance @ table.values / chance.sum(1)
                )
    return result


def _drawn(joint, rows, codes, draws, rng):
    posterior = joint.classifier.posterior_
    model, params = posterior.model, posterior.draws(rng, (draws,))
    incomplete = np.flatnonzero(sum(np.isnan(v.reshape(len(v), -1)).any(1) for v in rows.values()))
    part = select_rows(rows, incomplete)
    for i in range(draws):
        one = {site: v[i : i + 1] for site, v in params.items()}
        if codes is None:
            score = np.cumsum(softmax(model.log_likelihood_rows(one, part)[0], axis=0), axis=0)
            t = (rng.random(len(incomplete)) * score[-1] > score[:-1]).sum(0)
        else:
            t = codes[incomplete]
        result = {name: v.copy() for name, v in rows.items()}
        for name, leaf in model.leaves.items():
            own = {site: v[0] for site, v in model.site(one, name).items()}
            for k in np.unique(t):
                at = incomplete[t == k]
                result[name][at] = leaf.fill(rows[name][at], leaf.select_class(own, int(k)), rng)
        yield result


def _expected_of_average(joint, rows, codes):
    x, c = joint.arrays(rows)
    numbers, categories = missing.expected(joint.average, x, c, codes)
    return {"numbers": numbers, "categories": categories}


def _drawn_of_average(joint, rows, codes, draws, rng):
    x, c = joint.arrays(rows)
    for _ in range(draws):
        numbers, categories = missing.draw(joint.average, x, c, rng, codes)
        yield {"numbers": numbers, "categories": categories}
