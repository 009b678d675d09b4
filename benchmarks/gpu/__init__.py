"""What the CUDA engine takes on cards: moving data, training steps compared with PyTorch's, memory."""
