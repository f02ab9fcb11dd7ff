"""A target's one-shot example as an export carries it: with the launcher in one file, alone."""

import subprocess
import sys
from pathlib import Path

from data.records import Brief
from targets.joined import joined
from targets.remote.kforge_launch import Half


def assert_example_is_right(brief: Brief, half: Half, folder: Path) -> None:
    """The example computes its operator in a process that has nothing else of ours."""
    (folder / "kforge_launch.py").write_text(joined(half))
    check = (
        f"{brief.example_operator}\n{brief.example_kernel}\n"
        "torch.manual_seed(0)\nx = torch.randn(33, 100)\n"
        "a, b = Model(100), ModelNew(100)\n"
        "b.load_state_dict(a.state_dict())\n"
        "torch.testing.assert_close(b(x), a(x), rtol=1e-5, atol=1e-6)\nprint('same')\n"
    )
    (folder / "check.py").write_text(check)
    done = subprocess.run(
        [sys.executable, str(folder / "check.py")],
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "same\n", done.stderr[-800:]
