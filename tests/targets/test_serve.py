"""The judge server's protocol, with jobs that misbehave; the real ones are tested on their own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from data.codec import decode, encode
from data.records import BuildResult, Device, Operator
from targets.remote.peaks import Probe

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import os, subprocess, sys, time
from data.errors import MachineError
from data.records import Card
from pathlib import Path
from targets.remote.peaks import Probe
from targets.remote.serve import Context, serve

def sleep(_, args):
    subprocess.Popen(["sleep", str(args["seconds"])])
    time.sleep(args["seconds"])

def refuse(_, args):
    raise MachineError("the disk is full")

def big(_, args):
    return "x" * args["size"]

def shout(_, args):
    print("noise on stdout")
    os.system("echo more noise")
    return "said"

ops = {
    "echo": lambda _, args: args, "sleep": sleep, "refuse": refuse, "big": big, "shout": shout,
    "die": lambda _, args: os.kill(os.getpid(), 9), "quit": lambda _, args: os._exit(0),
    "bug": lambda _, args: 1 / 0,
}
card = Card(peak_gb_s=1.0)
serve(lambda: Context(cache=Path("/nowhere"), probe=Probe(card=card, environment={})), ops)
"""


class Client:
    """Writes lines, reads lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.number = 0

    def send(self, op: str, **args: Any) -> int:
        self.number += 1
        self.raw(json.dumps({"id": self.number, "op": op, "args": args}))
        return self.number

    def raw(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def ask(self, op: str, **args: Any) -> dict[str, Any]:
        number = self.send(op, **args)
        answer = self.answer()
        assert answer["id"] == number
        return answer


@contextmanager
def _client(*command: str) -> Iterator[Client]:
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            yield Client(process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with _client("-c", SCRIPT) as client:
        yield client


def test_answers_carry_the_number_and_the_value(client: Client) -> None:
    """A value comes back under the id of its request."""
    assert client.ask("echo", words=["a", None, 1.5])["value"] == {"words": ["a", None, 1.5]}


def test_large_answers_arrive_whole(client: Client) -> None:
    """More than a pipe holds is one line all the same."""
    assert len(client.ask("big", size=3_000_000)["value"]) == 3_000_000


def test_noise_on_stdout_is_no_answer(client: Client) -> None:
    """What a job prints never gets between the lines of the protocol."""
    assert client.ask("shout")["value"] == "said"


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ("refuse", "the disk is full"),
        ("die", "was ended by SIGKILL before it answered"),
        ("quit", "ended with 0 before it answered"),
        ("bug", "the judge itself failed: ZeroDivisionError"),
        ("nonsense", "unknown op 'nonsense'; known: echo"),
    ],
)
def test_job_that_fails_is_an_error_and_the_server_goes_on(
    client: Client, op: str, words: str
) -> None:
    """A job's death is said in one line; the next request is served."""
    answer = client.ask(op)
    assert answer["ok"] is False
    assert words in answer["error"]
    assert "\n" not in answer["error"]
    assert client.ask("echo")["ok"] is True


@pytest.mark.parametrize("line", ["garbage", "[]", "{}", '{"id": 1, "op": "echo", "args": 3}'])
def test_garbage_is_answered_without_a_number(client: Client, line: str) -> None:
    """A line that is no request does not end the server."""
    client.raw(line)
    assert client.answer()["id"] is None
    assert client.ask("echo")["ok"] is True


def test_jobs_run_beside_each_other(client: Client) -> None:
    """A slow job does not hold up a quick one."""
    slow = client.send("sleep", seconds=0.5)
    quick = client.send("echo")
    assert [client.answer()["id"], client.answer()["id"]] == [quick, slow]


def test_cancelled_job_is_gone_with_its_children(client: Client) -> None:
    """Cancel kills the job's whole process group and answers at once."""
    slow = client.send("sleep", seconds=4321)
    time.sleep(0.3)
    assert _sleepers("4321")
    assert client.ask("cancel", id=slow)["ok"] is True
    assert not _alive("4321")
    assert client.ask("echo")["ok"] is True
    assert client.ask("cancel", id=slow)["ok"] is True


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGKILL"])
def test_server_leaves_nothing_behind(how: str) -> None:
    """However the server ends, its jobs end with it."""
    with _client("-c", SCRIPT) as client:
        assert client.ask("echo")["ok"] is True
        client.send("sleep", seconds=4322)
        client.ask("echo")
        time.sleep(0.3)
        assert _sleepers("4322")
        if how == "end of input":
            assert client.process.stdin is not None
            client.process.stdin.close()
        else:
            client.process.send_signal(signal.Signals[how])
        client.process.wait(5)
        if how != "SIGKILL":  # then only the job itself dies: the kernel knows no grandchildren
            assert not _alive("4322")
        for pid in _sleepers("4322"):
            os.kill(pid, signal.SIGKILL)


def _sleepers(seconds: str) -> list[int]:
    """Processes named `sleep SECONDS`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", seconds.encode()]:
            found.append(int(entry.name))
    return found


def _alive(seconds: str) -> list[int]:
    """The same after a moment in which they may end."""
    for _ in range(40):
        if not _sleepers(seconds):
            return []
        time.sleep(0.05)
    return _sleepers(seconds)


def test_real_server_probes_and_builds(tmp_path: Path) -> None:
    """The module as it is started on a machine measures peaks and compiles a kernel."""
    source = (
        "from kforge_launch import kernels\n"
        "K = kernels('extern \"C\" void f(float* y) { y[0] = 1; }')\n"
    )
    device = encode(Device(name="cpu", target="cpu", vendor="cpu", arch="any"))
    operator = encode(Operator(name="any", source=""))
    with _client("-m", "targets.remote.serve", "--cache", str(tmp_path)) as client:
        probe = decode(Probe, client.ask("probe", device=device)["value"])
        assert probe.card.peak_gb_s > 0.5
        args = {"operator": operator, "candidate_source": source, "device": device}
        built = decode(BuildResult, client.ask("build", **args)["value"])
        assert built.ok
        assert built.route == "launcher"
        assert client.ask("measure")["ok"] is False
