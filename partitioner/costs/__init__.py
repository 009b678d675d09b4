"""Count the bytes that a choice, a plan or a lowered program moves."""
