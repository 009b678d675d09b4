"""The CUDA engine: the same instruction lists on cards, launch by launch or as one graph per iteration."""
