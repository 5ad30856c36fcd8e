"""RBMs as scikit-learn estimators. Needs `pip install keras-rbm[sklearn]`."""

try:
    from sklearn.utils.validation import validate_data as _validate_data  # noqa: F401
except ImportError as error:
    raise ImportError(
        "Expected the package scikit-learn, 1.6 or newer. Received: "
        f"{error}. Install it with: pip install keras-rbm[sklearn]"
    ) from error

from keras_rbm.sklearn.bernoulli_rbm import (
    from_bernoulli_rbm as from_bernoulli_rbm,
    to_bernoulli_rbm as to_bernoulli_rbm,
)
from keras_rbm.sklearn.crbm_classifier import CRBMClassifier as CRBMClassifier
from keras_rbm.sklearn.rbm_estimator import RBMEstimator as RBMEstimator
from keras_rbm.sklearn.rbm_imputer import RBMImputer as RBMImputer
from keras_rbm.sklearn.rbm_outlier_detector import (
    RBMOutlierDetector as RBMOutlierDetector,
)
from keras_rbm.sklearn.table_model import TableModel as TableModel
