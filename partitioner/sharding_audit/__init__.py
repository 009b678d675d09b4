"""The sharding rules of PyTorch's DTensor, held against descriptions and against plain PyTorch."""
