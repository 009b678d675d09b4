"""The search for a strategy: a fast model of synchronisation, exact parts of the problem, and simulation."""
