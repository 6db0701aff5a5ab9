"""What all packages share. To import it settles how torch's threads wait, for all commands."""

import os

# They spin by default, which takes the processor from whatever else runs on the machine. torch's
# library of threads reads this when torch is imported, so this package is imported before.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
