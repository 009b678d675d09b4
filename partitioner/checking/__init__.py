"""An independent check of plans."""
