"""One process for each device: programs that run on threads run unchanged over a network."""
