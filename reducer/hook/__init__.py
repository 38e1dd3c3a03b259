"""The file that ``scanshrink capture`` has Python load in a user's own processes, alone in its folder.

The folder goes on PYTHONPATH, where Python looks for a `sitecustomize` when it starts. Nothing else may lie here: it
would shadow the user's modules of that name.
"""
