"""Other people's models as symbols."""
