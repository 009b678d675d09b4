"""Plans and their files."""
