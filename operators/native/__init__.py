"""Kernels in C++ that this machine's compiler builds, if they are asked for. NumPy computes all others.

The source is written by the generator that writes CUDA (`operators/emit/`). A library of one kernel serves
all boxes, arrays and workers of the same class. It is kept on disk under a name that its content decides.
"""
