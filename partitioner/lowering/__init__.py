"""Lower a graph and a plan to programs."""
