"""AutoDist: how each variable is synchronised over data-parallel workers (Zhang et al.)."""
