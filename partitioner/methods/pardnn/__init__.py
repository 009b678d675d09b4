"""ParDNN's search: slicing, mapping and memory (Qararyah et al., Parallel Computing 2021)."""
