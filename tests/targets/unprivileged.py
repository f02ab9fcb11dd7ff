"""Run by a user without rights: a judge's best rung, an attack and an honest candidate on it."""

import os
import sys
from pathlib import Path

from targets.remote.output import SideFault
from tests.targets.rig import Rig

HOG = "import torch\nx = [torch.ones(16 << 20) for _ in range(64)]\nclass ModelNew: pass"
FORKS = (
    "import os, time\nfor n in range(512):\n    try:\n"
    "        if os.fork() == 0: time.sleep(600)\n    except OSError: break\n"
    "print('forks', n)\nclass ModelNew: pass"
)

if __name__ == "__main__":
    rig = Rig(Path(sys.argv[1]))
    with rig.side() as side:
        side.load(FORKS)
    print(os.getuid(), side.child.isolation, side.child.user, side.child.log().strip())
    try:
        with rig.side(memory_mib=300) as side:
            side.load(HOG)
    except SideFault as fault:
        print(fault.fault.status)
    with rig.side() as side:
        side.load("class ModelNew: pass")
    rig.zygote.close()
    print("honest")
