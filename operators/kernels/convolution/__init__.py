"""NumPy kernels attached to descriptions where derived ones are slower. They are audited, never required."""

from .attached import Convolution, ConvolutionDataGradient, ConvolutionWeightGradient

__all__ = [
    "Convolution",
    "ConvolutionDataGradient",
    "ConvolutionWeightGradient",
]
