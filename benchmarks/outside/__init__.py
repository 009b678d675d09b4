"""Operators of outside users, none of them in the library, each with the same in PyTorch."""
