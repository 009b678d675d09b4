"""Boxes cut into pieces in which conditions are decided and indices are affine."""
