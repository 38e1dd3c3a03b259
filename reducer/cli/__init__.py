"""The command line: thin modules over the library, one per command."""

try:
    from reducer.cli.main import main
except KeyboardInterrupt:  # while the command line itself is being loaded: nothing has begun, nothing is lost
    import sys

    print("scanshrink: interrupted", file=sys.stderr)
    raise SystemExit(130) from None

__all__ = ["main"]
