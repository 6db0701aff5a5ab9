"""A command imports this first, so that Ctrl-C ends it at once and all its messages can be printed.

Otherwise an interrupt during an import would print a traceback, or be lost inside a library.
"""

import io
import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)
for _stream in (sys.stdout, sys.stderr):
    if isinstance(_stream, io.TextIOWrapper):  # in case it cannot write all of UTF-8
        _stream.reconfigure(errors="backslashreplace")
