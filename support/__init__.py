"""What knows nothing of tensors."""
