"""Data parallelism, ZeRO and Megatron on a mesh of workers, as plans of the language."""
