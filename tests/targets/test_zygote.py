"""The warm process and what happens when one side of it dies."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from targets.remote import users, warm
from targets.remote.drain import KEPT, Drain
from targets.remote.processes import descendants
from tests.targets.rig import Rig


def gone(pid: int) -> bool:
    """Within two seconds."""
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.01)
    return False


def test_children_share_nothing(rig: Rig) -> None:
    """What one candidate patches, the next does not see."""
    with rig.side() as first:
        first.load("import torch, kforge_launch\ntorch.relu = None\nclass ModelNew: pass")
    with rig.side() as second:
        second.load("import torch\nassert torch.relu is not None\nclass ModelNew: pass")
    assert first.child.pid != second.child.pid


def test_a_child_that_has_ended_is_not_killed_again(rig: Rig) -> None:
    """Its handle is closed, and the number may be another child's by now."""
    with rig.side() as first:
        first.child.end()
        with rig.side() as second:
            first.child.kill()
            first.child.end()
            second.load("class ModelNew: pass")
            assert not gone(second.child.pid)


def test_what_a_fork_of_the_warm_process_compiles_belongs_to_baselines() -> None:
    """Nobody waits for it, and a folder of root's that comes late fails a baseline's compiler."""
    baseline = users.spare(trusted=True)
    if baseline is None:
        pytest.skip("only root can make children another user")
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    place.chmod(0o777)
    made = place / "2u"
    warm._in_fork(made.mkdir)
    try:
        for _ in range(500):
            if made.exists():
                break
            time.sleep(0.01)
        assert made.stat().st_uid == baseline.uid
    finally:
        shutil.rmtree(place)


def test_several_job_processes_may_ask_at_once(rig: Rig) -> None:
    """Forked jobs use the same warm process."""
    pids = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                with rig.side() as side:
                    side.load("class ModelNew: pass")
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0]


def test_a_child_dies_with_the_judge(rig: Rig) -> None:
    """A killed job leaves no child behind."""
    reading, writing = os.pipe()
    job = os.fork()
    if job == 0:
        side = rig.side()
        os.write(writing, str(side.child.pid).encode())
        time.sleep(60)
        os._exit(0)
    child = int(os.read(reading, 20))
    os.kill(job, 9)
    os.waitpid(job, 0)
    assert gone(child)
    os.close(reading)
    os.close(writing)


def test_a_killed_judge_leaves_no_process_and_no_file(
    tmp_path: Path, warmed: Callable[[Path], Path]
) -> None:
    """SIGKILL while a child runs: warm process, keeper, child and its daemon are gone soon."""
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom targets.remote.zygote import Zygote\n"
        "from targets.remote.sandbox import Limits\nfrom targets.remote.side import Side\n"
        "from targets.remote.allowance import Allowance\n"
        "z = Zygote(Path(sys.argv[1]))\n"
        "c = z.child(Limits(memory_bytes=1 << 30, seconds=60.0))\n"
        "s = Side(c, name='c', allowance=Allowance(60.0))\n"
        "s.load('import os, time\\nif not os.fork(): os.setsid(); time.sleep(60)\\n"
        "class ModelNew: pass')\n"
        "c.freeze()\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-c", script, str(warmed(tmp_path / "cache"))]
    environ = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, env=environ) as judge:
        assert judge.stdout is not None
        assert judge.stdout.readline() == b"ready\n"
        family = descendants(judge.pid)
        assert len(family) >= 5
        judge.kill()
    assert all(gone(p) for p in family)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_what_is_printed_is_cut_in_the_middle() -> None:
    """Head and tail are kept, the lost part is counted."""
    reading, writing = os.pipe()
    drain = Drain(reading)
    for _ in range(40):
        os.write(writing, b"a" * (1 << 15))
    os.write(writing, b"\x07end\n")
    os.close(writing)
    drain.join()
    text = drain.text()
    assert text.endswith("aend\n")
    assert f"{40 * (1 << 15) + 5 - 2 * KEPT} bytes cut" in text
