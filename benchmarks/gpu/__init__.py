"""The times of the CUDA engine on cards: moving data, training steps compared with PyTorch's, memory."""
