"""What foreign code can reach from inside."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from data.records import RunStatus
from targets.remote import root, users
from targets.remote.output import SideFault
from targets.remote.side import Side
from tests.targets.rig import Rig

OTHER = 60610
"""A user id that nobody has."""
TOKEN = "kforge-canary-3141"


def told(side: Side, body: str) -> str:
    """What the code prints inside."""
    with side:
        side.load(body + "\nclass ModelNew: pass\n")
    return side.child.log()


def test_no_secret_is_in_reach(rig: Rig, tmp_path: Path) -> None:
    """Neither the environment, nor procfs, nor files of the judge show a token."""
    os.environ["KFORGE_CASE_TOKEN"] = TOKEN
    (tmp_path / "secret").write_text(TOKEN)
    side = rig.side()
    if not rig.zygote.rung.namespaces:
        side.close()
        pytest.skip("no namespaces here: this rung reads everything")
    text = told(
        side,
        f"""
import os, glob
seen = repr(dict(os.environ))
for path in glob.glob("/proc/[0-9]*/environ") + [{str(tmp_path / "secret")!r}]:
    try: seen += open(path).read()
    except OSError as e: pass
visible = [p for p in os.listdir("/proc") if p.isdigit()]
print("found" if {TOKEN!r} in seen else "clean", len(visible))
for path in ({str(Path.cwd())!r} + "/data/operators", "/etc/shadow"):
    print(os.path.exists(path))
""",
    )
    del os.environ["KFORGE_CASE_TOKEN"]
    assert "clean 1" in text
    assert "True" not in text


def test_nothing_outside_can_be_written_and_no_network_reached(rig: Rig) -> None:
    """Writes fail with EROFS outside the sized tmpfs; there is no route out."""
    side = rig.side()
    if not rig.zygote.rung.namespaces:
        side.close()
        pytest.skip("no namespaces here")
    text = told(
        side,
        """
import os, socket, torch, subprocess
for path in (torch.__file__, "/usr/x", "/x", "/proc/sys/vm/drop_caches", "/dev/x"):
    try: open(path, "a"); print("WRITTEN", path)
    except OSError as e: print(e.errno)
try: socket.create_connection(("1.1.1.1", 53), 1); print("WRITTEN net")
except OSError as e: print("net", e.errno)
undo = "mount -o remount,rw / ; mount -t tmpfs none /usr; touch /usr/x && echo WRITTEN"
subprocess.run(undo, shell=True)
try:
    with open("/tmp/big", "wb") as f:
        for _ in range(200): f.write(bytes(1 << 20))
    print("WRITTEN big")
except OSError as e: print("full")
""",
    )
    assert "WRITTEN" not in text
    assert "full" in text


def test_memory_is_limited_and_named(rig: Rig) -> None:
    """A hog is killed at its limit and the verdict says memory."""
    with rig.side(memory_mib=300) as side, pytest.raises(SideFault) as fault:
        side.load(
            "import torch\nx = [torch.ones(16 << 20) for _ in range(32)]\nclass ModelNew: pass"
        )
    assert fault.value.fault.status is RunStatus.OUT_OF_MEMORY


def test_a_fork_bomb_and_a_daemon_leave_nothing(rig: Rig) -> None:
    """All processes of a child, sessions of their own included, die with it."""
    side = rig.side()
    side.load(
        """
import os, time
for _ in range(200):
    try:
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
    except OSError:
        break
class ModelNew: pass
"""
    )
    inside = side.child.processes()
    assert 2 < len(inside) <= 200
    side.close()
    time.sleep(0.2)
    assert not [p for p in inside if Path(f"/proc/{p}").exists()]


def test_a_flood_of_output_is_bounded_and_stripped(rig: Rig) -> None:
    """Head and tail stay, the middle is counted, escapes are gone."""
    text = told(
        rig.side(),
        'import os\nos.write(1, b"\\x1b[2Jhead")\n'
        'for _ in range(64): os.write(1, b"x" * (1 << 16))',
    )
    assert text.startswith("[2Jhead")
    assert "bytes cut" in text
    assert len(text) < 1_100_000


def test_a_user_without_rights_has_walls_too(warmed: Callable[[Path], Path]) -> None:
    """Namespaces, limits and memory's name hold without root; root's files are shown to it."""
    cache = Path(tempfile.mkdtemp(prefix="kforge-test-", dir="/tmp"))
    here = Path(__file__).parents[2]
    try:
        if users.spare(trusted=False) is None:
            pytest.skip("only root can become another user")
        users.own(warmed(cache), OTHER)
        folders = [*root.system_folders(), str(here), str(cache)]
        plan = json.dumps({"folders": folders, "uid": OTHER, "groups": []})
        script = [sys.executable, str(here / "tests/targets/unprivileged.py"), str(cache)]
        done = subprocess.run(
            [sys.executable, "-m", "targets.remote.bubblewrap", plan, *script],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(here), "TMPDIR": "/tmp"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(cache)
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"this machine lets not even root mount: {done.stderr[-200:]}")
    first, *rest = done.stdout.splitlines()
    uid, rung, user, _, forks = first.split()
    assert (int(uid), int(user)) == (OTHER, OTHER), done.stderr
    assert rung.partition("+")[0] in ("bubblewrap", "unshare", "landlock")
    assert int(forks) <= 64 + 4 * (os.cpu_count() or 1)
    assert rest == ["out_of_memory", "honest"]
