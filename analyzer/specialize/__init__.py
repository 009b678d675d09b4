"""From a description as written to one for given attributes and ranks, without stages."""
