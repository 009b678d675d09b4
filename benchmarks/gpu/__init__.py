"""What the CUDA engine takes on cards: moving data, training steps beside PyTorch's, memory."""
