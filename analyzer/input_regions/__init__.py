"""Which elements a box of the iteration space reads, exactly."""
