"""The averaged classifier as a model of AutoGluon, which is how TabArena takes models; it needs both packages.

It is a module of its own, since models are pickled by the names of their modules. In another benchmark of TabArena:
`TabArenaV0pt1ExperimentBundle(models=[(AveragedModel.config_generator(), 0)], outer_experiments=True)`.
"""

import pandas as pd
from autogluon.core.models import AbstractModel
from tabarena.utils.config_utils import ConfigGenerator

from bayesgen import AveragedClassifier


class AveragedModel(AbstractModel):
    """`AveragedClassifier` for binary and multiclass tasks; hyperparameters are its settings.

    It takes numbers, categories and gaps as they are, and all rows of the fit: there is nothing that rows of validation
    would stop or choose, and the limit of time is not looked at.
    """

    ag_key = "BAYESGEN"
    ag_name = "BayesgenAveraged"
    seed_name = "random_state"

    def _preprocess(self, X: pd.DataFrame, is_train: bool = False, **kwargs) -> pd.DataFrame:
        """Columns of two values, which AutoGluon codes as 0 and 1, are categories again."""
        X = super()._preprocess(X, **kwargs)
        if is_train:
            self._pairs = {name: sorted(X[name].dropna().unique()) for name in X if X[name].nunique() == 2}
        return X.assign(**{name: pd.Categorical(X[name], values) for name, values in self._pairs.items()})

    def _fit(self, X: pd.DataFrame, y: pd.Series, **kwargs) -> None:
        X = self.preprocess(X, y=y, is_train=True)
        self.model = AveragedClassifier(progress=False, **self._get_model_params()).fit(X, y)

    def _get_default_auxiliary_params(self) -> dict:
        return super()._get_default_auxiliary_params() | {"valid_raw_types": ["int", "float", "category"]}

    @classmethod
    def supported_problem_types(cls) -> list[str]:
        """Two classes or more; no regression."""
        return ["binary", "multiclass"]

    @classmethod
    def config_generator(cls) -> ConfigGenerator:
        """Return the default settings alone: nothing needs tuning."""
        return ConfigGenerator(model_cls=cls, search_space={}, manual_configs=[{}])
