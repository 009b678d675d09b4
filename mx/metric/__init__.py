"""`mx.metric`: running measures of outputs against labels."""

from .base import CompositeEvalMetric, CustomMetric, EvalMetric, create, np_, register
from .classification import (
    F1,
    Accuracy,
    CrossEntropy,
    NegativeLogLikelihood,
    Perplexity,
    TopKAccuracy,
)
from .regression import MAE, MSE, RMSE, Loss

__all__ = [
    "F1",
    "MAE",
    "MSE",
    "RMSE",
    "Accuracy",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "Loss",
    "NegativeLogLikelihood",
    "Perplexity",
    "TopKAccuracy",
    "create",
    "np",
    "np_",
    "register",
]

np = np_
