"""A right candidate under the vendor's profiler, where there is one: counters for the analyst.

The profiler runs behind the candidate's walls, on a call of its own after the timing: what it
counts is advice, never evidence. A profiler that fails is a remark and no fault.
"""

import os
import shutil
import sys
from pathlib import Path

import torch

from data.errors import MachineError
from data.records import Profile
from targets import TARGETS
from targets.joined import joined
from targets.remote import strays
from targets.remote.bench import Bench
from targets.remote.kforge_launch import CPP, HALVES
from targets.remote.products import sources_of
from targets.remote.sandbox import Limits, View
from targets.remote.walled import Ended, walled

LIMITS = Limits(memory_bytes=32 << 30, seconds=40.0)
"""ncu replays each kernel some forty times and saves the device's memory: 6 s on an H200."""
DRIVER = """
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
os.environ["KFORGE_LAUNCH_CACHE"] = HERE
import torch

place = "cuda" if torch.cuda.is_available() else "cpu"
given = torch.load(os.path.join(HERE, "given.pt"), map_location=place, weights_only=True)
import candidate

model = candidate.ModelNew(*given["init"]).to(place)
model.load_state_dict(given["state"])
with torch.no_grad():
    for _ in range(3):
        model(*given["inputs"])
    if place == "cuda":
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
    model(*given["inputs"])
    if place == "cuda":
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
"""
FILE = "driver.py"


def profiled(bench: Bench) -> Profile | None:
    """Metrics of one call at the official shape; None where the machine has no profiler."""
    target = TARGETS[bench.job.device.target]
    command = target.profile_command((sys.executable, "-I", FILE))
    tool = shutil.which(command[0]) if command else None
    if tool is None:
        return None
    why = f"it took longer than {LIMITS.seconds:.0f} s"
    try:
        with strays.folder() as folder:
            _lay_out(folder, bench)
            ended = _run((tool, *command[1:]), folder, bench.kind.nodes())
        if ended.in_time:
            return target.parse_profile(ended.log)
    except MachineError as error:
        why = str(error)
    return Profile(metrics=(), remarks=(f"no profile by {command[0]}: {why}",))


def _run(command: tuple[str, ...], folder: Path, nodes: tuple[str, ...]) -> Ended:
    """The profiler with all that it starts; it may lie where nothing else is shown.

    Without sockets of its own ncu waits for its program until the time is up.
    """
    home = str(Path(command[0]).resolve().parent)

    def become(_: int) -> None:
        os.execv(command[0], command)  # noqa: S606 (a list)

    return walled(become, folder, LIMITS, View(readable=(home,), nodes=nodes, talks=True))


def _lay_out(folder: Path, bench: Bench) -> None:
    """All that the call needs, without our files: launcher, candidate, arguments and parameters."""
    loaded, job = bench.loaded, bench.job
    used = {language for language, _ in sources_of(bench.cache, job.device, job.source) or ()}
    half = next((HALVES[word] for word in used), CPP)
    (folder / "kforge_launch.py").write_text(joined(half))
    (folder / "candidate.py").write_text(job.source)
    (folder / FILE).write_text(DRIVER)
    shape = loaded.official
    given = {
        "init": loaded.init_args(shape),
        "inputs": loaded.inputs(shape, bench.seed),
        "state": dict(loaded.model(shape, bench.seed).state_dict()),
    }
    torch.save(given, folder / "given.pt")
