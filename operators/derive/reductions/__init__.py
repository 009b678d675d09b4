"""Reductions in a form that is cheap to compute: products, prefixes, choices by equality."""
