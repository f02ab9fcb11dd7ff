"""`python -m PACKAGE verify`: compares every kernel with its reference on this machine."""

import argparse
import importlib
import sys

from . import strictness, verify
from .catalogue import KERNELS


def main() -> int:
    """0: all that ran are right; 1: one is wrong; 2: none could be run."""
    package = (__package__ or "").partition(".")[0]
    importlib.import_module(package)
    parser = argparse.ArgumentParser(prog=f"python -m {package}")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("verify", help="compare the kernels with PyTorch on fresh inputs")
    verb.add_argument("--operator", action="append", choices=sorted(KERNELS), help="repeatable")
    verb.add_argument("--seed", type=int, help="a secret one unless given")
    asked = parser.parse_args()
    strictness.require_verified()  # what cannot be built must not be replaced by the reference
    statuses = []
    for operator in asked.operator or KERNELS:
        for kernel in KERNELS[operator]:
            for finding in verify.findings(kernel, asked.seed):
                print(finding, flush=True)
                statuses.append(finding.status)
    wrong, right = statuses.count("wrong"), statuses.count("right")
    print(f"{right} right, {wrong} wrong, {statuses.count('not run')} not run")
    return 1 if wrong else 0 if right else 2


if __name__ == "__main__":
    sys.exit(main())
