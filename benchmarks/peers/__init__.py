"""The reducers that scanshrink is measured against, each with an adapter to programs of the IR. See `reducers.py`."""
