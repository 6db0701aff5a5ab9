"""What all packages share. To import it settles how torch's threads work, for all commands.

torch's libraries read these when it is imported, so this package is imported before.
"""

import os

# By default threads spin, which takes the processor from whatever else runs on the machine, and
# MKL's products depend on the number of threads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
