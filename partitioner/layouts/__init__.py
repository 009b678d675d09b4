"""Which worker holds or computes which box."""
