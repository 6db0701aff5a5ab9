"""Measurements, and files that would do harm. Threads work as in the commands."""

import common  # noqa: F401  # before torch
