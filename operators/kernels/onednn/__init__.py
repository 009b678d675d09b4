"""Convolutions and products of matrices by oneDNN, if it is installed. NumPy computes what it does not take.

The library (https://github.com/uxlfoundation/oneDNN, version 3.2) is called through its C interface. It makes
a *primitive* for given shapes, forms in memory and geometry, which runs on any arrays of these forms.
"""
