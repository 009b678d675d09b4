"""What a choice, a plan or a lowered program moves."""
