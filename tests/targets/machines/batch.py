"""`sbatch`, `squeue` and `scancel` as scripts: a queue in a folder, a node that is this host.

They print what Slurm 23.11 prints: `--parsable` gives `ID;cluster`, a job that is over is unknown
to squeue after a while (`Invalid job id specified`, exit status 1), scancel is silent and asks
with SIGTERM, then kills.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

SBATCH = """#!{python}
import json, os, sys
queue = {queue!r}
script, options = sys.argv[-1], sys.argv[1:-1]
if "--partition=none" in options:
    sys.exit("sbatch: error: invalid partition specified: none")
log = next(a.partition("=")[2] for a in options if a.startswith("--output="))
number = str(len(os.listdir(queue)) + 1000)
while True:
    try:
        os.mkdir(f"{{queue}}/{{number}}")
        break
    except FileExistsError:
        number = str(int(number) + 1)
open(f"{{queue}}/{{number}}/state", "w").write("PENDING")
open(f"{{queue}}/{{number}}/new", "w").write(json.dumps([script, log]))
os.rename(f"{{queue}}/{{number}}/new", f"{{queue}}/{{number}}/job")
print(f"{{number}};lab")
"""
SQUEUE = """#!{python}
import sys
number = next(a.partition("=")[2] for a in sys.argv if a.startswith("--jobs="))
try:
    print(open(f"{queue}/{{number}}/state").read())
except OSError:
    sys.exit("slurm_load_jobs error: Invalid job id specified")
"""
SCANCEL = """#!{python}
import os, signal, sys, time
place = f"{queue}/{{sys.argv[1]}}"
try:
    pid = int(open(f"{{place}}/pid").read())
    os.killpg(pid, signal.SIGTERM)
    for _ in range(300):
        time.sleep(0.01)
        os.killpg(pid, 0)
    os.killpg(pid, signal.SIGKILL)
except (OSError, ValueError):
    pass
if not os.path.exists(f"{{place}}/pid") and os.path.exists(f"{{place}}/state"):
    open(f"{{place}}/state", "w").write("CANCELLED")
"""


def installed(folder: Path) -> Path:
    """A folder for PATH with the three tools."""
    tools, queue = folder / "tools", folder / "queue"
    for made in (tools, queue):
        made.mkdir()
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
        (tools / name).write_text(text.format(python=sys.executable, queue=str(queue)))
        (tools / name).chmod(0o755)
    return tools


class Controller(threading.Thread):
    """Starts what is queued, as slurmctld does: no job is a child of sbatch."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name="slurmctld", daemon=True)
        self._queue, self.over = folder / "queue", threading.Event()
        self._running: dict[Path, subprocess.Popen[bytes]] = {}

    def run(self) -> None:
        """Until it is over."""
        while not self.over.wait(0.05):
            for job in self._queue.glob("*/job"):
                self._start(job)
            for place, process in list(self._running.items()):
                if process.poll() is not None:
                    del self._running[place]
                    (place / "state").unlink()

    def _start(self, job: Path) -> None:
        script, log = json.loads(job.read_text())
        job.unlink()
        if (job.parent / "state").read_text() != "PENDING":
            (job.parent / "state").unlink()
            return
        with Path(log).open("wb") as out:
            process = subprocess.Popen(
                ["sh", script],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
                start_new_session=True,
            )
        (job.parent / "pid").write_text(str(process.pid))
        (job.parent / "state").write_text("RUNNING")
        self._running[job.parent] = process
