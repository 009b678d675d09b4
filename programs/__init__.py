"""What a lowered plan is: instruction lists, their clock, memory and waits, and their verification."""
