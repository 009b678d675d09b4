"""The contract between operators and kernels, scratch memory, and NumPy kernels that are attached."""
