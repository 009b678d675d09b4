"""Devices, their memory, and the links between them."""
