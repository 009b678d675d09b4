"""From a graph and a plan to programs."""
