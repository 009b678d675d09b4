"""NumPy kernels attached to descriptions where derived ones are slower. They are audited, never required."""

from .attached import ConvolutionDataGradient, ConvolutionOutput, ConvolutionWeightGradient

__all__ = [
    "ConvolutionDataGradient",
    "ConvolutionOutput",
    "ConvolutionWeightGradient",
]
