"""Statistics of classified rows: how many there are of each class, and those of each leaf by class."""

import operator
from dataclasses import dataclass, replace

import numpy as np

from bayesgen.program import static
from bayesgen.statistics import Statistics, SumStatistics


@dataclass(frozen=True, eq=False)
class ClassStatistics(Statistics):
    """Statistics of a classifier: class counts, and each leaf's statistics by class.

    Attributes
    ----------
    classes : SumStatistics
        Sum of weights of each class.
    leaves : dict
        By name of the leaf.
    squares : array, shape (K,)
        Sum of squared weights of each class: (Σw)²/Σw² is Kish's effective number of rows.
    schema : str
        Fingerprint of the columns, categories and classes that were summed, where they are known. Statistics of two
        schemas do not add: one code would stand for two categories.
    decayed : bool
        Whether some rows were made to count less since they were summed.
    """

    classes: SumStatistics
    leaves: dict[str, Statistics]
    squares: np.ndarray
    schema: str = static(default="")
    decayed: bool = static(default=False)

    def _with(self, other, sign):
        if not isinstance(other, ClassStatistics) or self.leaves.keys() != other.leaves.keys():
            return super()._with(other, sign)
        if self.schema and other.schema and self.schema != other.schema:
            raise ValueError(
                "these are statistics of two schemas, which do not add: columns, categories or classes differ, or come "
                "in another order; sum all pieces under one schema"
            )
        combine = operator.add if sign > 0 else operator.sub
        leaves = {name: combine(mine, other.leaves[name]) for name, mine in self.leaves.items()}
        classes, squares = combine(self.classes, other.classes), combine(self.squares, other.squares)
        return ClassStatistics(classes, leaves, squares, self.schema or other.schema, self.decayed or other.decayed)

    def scaled(self, factor):
        """Statistics in which every row counts ``factor`` times what it did, marked as `decayed`."""
        leaves = {name: own.scaled(factor) for name, own in self.leaves.items()}
        return ClassStatistics(self.classes.scaled(factor), leaves, self.squares * factor**2, self.schema, True)

    def under(self, schema: str) -> "ClassStatistics":
        """The same statistics with the fingerprint of their schema."""
        return replace(self, schema=schema)
