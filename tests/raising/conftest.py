"""JAX on the CPU only: these tests parse modules and run small programs, they compile nothing for a TPU."""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
