"""The decoder and what is done with it: tensors only, nothing about music."""
