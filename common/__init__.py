"""What all packages share. Importing it settles how torch's threads work in every command.

The libraries of torch read these settings when torch is imported, so this package comes first.
"""

import os

# By default, idle threads spin, which takes the processor from everything else on the machine, and
# products by MKL depend on the number of threads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
