"""Import this first in a command: until its work begins, Ctrl-C ends it at once.

An interrupt in the middle of an import would be a traceback, or be lost in the library's own.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)
