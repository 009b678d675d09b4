"""What people read: tables of plans, strategies and training runs."""
