"""One training step of a model in Tofu, MXNet and PyTorch, each served by a separate process."""
