"""What every test runs under."""

import torch

torch.set_num_threads(1)  # tiny tensors: more threads cost more than they bring
