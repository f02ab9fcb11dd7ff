"""Confirmed kernels as a Python package that needs torch alone: `kforge export`."""
