"""The steps of a kernel: their values, the memory of these, and the recipe made of the steps."""
