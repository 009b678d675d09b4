"""Reports for people: tables of plans, strategies and training runs."""
