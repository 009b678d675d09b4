"""NumPy kernels attached to descriptions where derived ones are slower. They are audited, never required."""

from .convolution_kernel import Convolution, ConvolutionDataGradient, ConvolutionWeightGradient
from .embedding_kernel import EmbeddingGradient

__all__ = [
    "Convolution",
    "ConvolutionDataGradient",
    "ConvolutionWeightGradient",
    "EmbeddingGradient",
]
