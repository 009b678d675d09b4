"""Sums of tables: exact, bounded and anytime minimisation. Nothing here knows of tensors or plans."""
