"""What a plan decides, and why."""
