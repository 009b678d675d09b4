"""Operators as users outside of the library write them, each with the same in PyTorch."""
