"""Measurements, and attacks with broken files. Threads are set up as in the commands."""

import common  # noqa: F401  # must come before torch
