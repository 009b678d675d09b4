"""The audit of strategies: proved for all shapes where that is possible, tried on small ones, or refuted."""
