"""The CUDA engine runs the same instruction lists on cards, launch by launch or as a graph per iteration."""
