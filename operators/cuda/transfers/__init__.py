"""Moving data on devices."""
