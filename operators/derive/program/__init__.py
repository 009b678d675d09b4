"""From nodes to steps."""
