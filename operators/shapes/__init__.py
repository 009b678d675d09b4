"""Unknown shapes from known ones."""
