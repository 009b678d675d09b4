"""Index expressions: normal forms, intervals, values and boxes."""
