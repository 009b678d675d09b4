"""Drawings of regions: what every worker owns, reads and makes of a tensor, as SVG or PNG."""
