"""The work of a stream: commands, and the arguments and geometry of launches."""
