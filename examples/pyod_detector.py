"""`RBMOutlierDetector` as a detector of PyOD, for its ensembles and thresholds.

    pip install keras-rbm[sklearn] pyod
    python examples/pyod_detector.py

PyOD's scores are high for outliers: minus the log-likelihood in nats, up to a constant.
Four columns of made-up rows follow one another; in the outliers they do not.
"""

import numpy as np
from pyod.models.base import BaseDetector
from pyod.models.iforest import IForest
from sklearn.metrics import roc_auc_score

from keras_rbm.sklearn import RBMOutlierDetector


class RBMDetector(BaseDetector):
    """An `RBMOutlierDetector` with the names that PyOD has for things.

    Args:
        contamination: float in (0, 0.5], the share of the rows of `fit` above whose
            scores PyOD says that a row is an outlier.
        parameters: dict, of `RBMOutlierDetector`, or `None`.
    """

    def __init__(self, contamination=0.1, parameters=None):
        super().__init__(contamination=contamination)
        self.parameters = parameters

    def fit(self, X, y=None):
        self._set_n_classes(y)
        self.detector_ = RBMOutlierDetector(**self.parameters or {}).fit(X)
        self.decision_scores_ = self.decision_function(X)
        self._process_decision_scores()
        return self

    def decision_function(self, X):
        return -self.detector_.decision_function(X)


def main():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 1)) + rng.normal(0.0, 0.3, (1000, 4))
    rows[:50] = rng.permuted(rows[:50], axis=0)
    is_outlier = np.arange(1000) < 50
    for detector in (
        RBMDetector(0.05, {"random_state": 0}),
        IForest(contamination=0.05, random_state=0),
    ):
        detector.fit(rows)
        auc = roc_auc_score(is_outlier, detector.decision_scores_)
        right = np.mean(is_outlier[detector.labels_ > 0])
        print(f"{type(detector).__name__:12} AUC {auc:.3f}, precision {right:.2f}")


if __name__ == "__main__":
    main()
