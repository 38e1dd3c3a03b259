"""The command line: thin modules over the library, one per command."""

from reducer.cli.main import main

__all__ = ["main"]
