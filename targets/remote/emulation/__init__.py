"""Kernels of GPUs executed on a processor: right or wrong, with faults by line, never a time."""
