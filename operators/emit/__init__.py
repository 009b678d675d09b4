"""From a description to CUDA C++ source."""
