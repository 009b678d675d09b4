"""The steps of a kernel: what they pass on, where it lies in memory, and the recipe made of them."""
