"""`python -m reducer.cli`: the same as `scanshrink`."""

from reducer.cli.main import main

main(prog_name="scanshrink")
