"""From IR to Python text that uses public JAX functions only: the one back end.

`emit` writes a program, `load` executes the text, `repro_script` wraps it into a file that stands alone. Writing
needs no JAX; only executing does.
"""
