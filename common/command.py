"""Import this first in a command: Ctrl-C ends it at once, and whatever it says can be printed.

An interrupt in the middle of an import would be a traceback, or be lost in the library's own.
"""

import io
import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)
for _stream in (sys.stdout, sys.stderr):
    if isinstance(_stream, io.TextIOWrapper):  # one that holds fewer letters than UTF-8 does
        _stream.reconfigure(errors="backslashreplace")
