"""Run partitioned graphs: engines, executors, and training on top of them."""
