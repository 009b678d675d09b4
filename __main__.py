"""`python -m tofu` is the command `tofu`."""

from .cli import main

main(prog_name="tofu")
