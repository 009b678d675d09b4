"""Along which index variables an operator can be split, and why others cannot be."""
