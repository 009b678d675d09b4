"""What a stream is given: commands, and the arguments and geometry of launches."""
