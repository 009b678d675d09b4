"""The audit of strategies: proved for all shapes if that is possible, tried on small ones, or refuted."""
