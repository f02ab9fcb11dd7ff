"""Faults of a child are values of the judge."""

import time

import pytest
import torch

from data.errors import MachineError
from data.records import RunStatus
from targets.remote.allowance import Allowance
from targets.remote.cgroup import Group
from targets.remote.check import same
from targets.remote.output import SideFault
from tests.targets.rig import SECONDS, Rig

WRAP = """
import ctypes, os, signal, sys, time, torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        {body}
"""

FAULTS = {
    "os._exit(0)": RunStatus.FORGED,
    'print("{\\"correct\\": true}", flush=True); os._exit(0)': RunStatus.FORGED,
    "os._exit(3)": RunStatus.CRASHED,
    "ctypes.string_at(8)": RunStatus.CRASHED,
    "raise ValueError('no')": RunStatus.CRASHED,
    "sys.exit(0)": RunStatus.CRASHED,
    "time.sleep(600)": RunStatus.TIMED_OUT,
    "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); exec('while True: pass')": (
        RunStatus.TIMED_OUT
    ),
    "os.closerange(3, 100); time.sleep(600)": RunStatus.FORGED,
    "[os.write(f, b'y' * 100) for f in range(3, 10) if os.path.exists(f'/proc/self/fd/{f}')]": (
        RunStatus.FORGED
    ),
    "return torch.nn.Buffer(x).as_subclass(type('Later', (torch.Tensor,), {}))": (
        RunStatus.BAD_STRUCTURE
    ),
    "return x.to_sparse()": RunStatus.BAD_STRUCTURE,
    "return 'done'.encode()": RunStatus.BAD_STRUCTURE,
}


@pytest.mark.parametrize("body", FAULTS)
def test_a_fault_is_a_value_with_its_name(rig: Rig, body: str) -> None:
    """Exit, crash, hang, forged or malformed answers: each is told apart."""
    with rig.side(call_s=1.0) as side:
        side.load(WRAP.format(body=body))
        side.construct([], {})
        side.inputs([[torch.ones(4)]])
        with pytest.raises(SideFault) as fault:
            [side.call() for _ in range(2)]
    assert fault.value.fault.status is FAULTS[body], fault.value.fault


def test_an_import_error_shows_the_candidates_line(rig: Rig) -> None:
    """The generator needs the line, not our stack."""
    with rig.side() as side, pytest.raises(SideFault) as fault:
        side.load("x = 1\nimport no_such_module\n")
    assert fault.value.fault.status is RunStatus.IMPORT_FAILED
    assert "line 2: import no_such_module" in fault.value.fault.detail


@pytest.mark.parametrize(
    "body",
    [
        "raise RuntimeError(str(dict(os.environ)))",
        "raise RuntimeError(repr(open('/proc/self/environ', 'rb').read()))",
        "raise RuntimeError(str([*os.environ.items()]))",
    ],
)
def test_an_exception_shows_no_environment(rig: Rig, body: str) -> None:
    """Not even the child's own, which holds no secret: it tells where the judge lives."""
    with rig.side() as side, pytest.raises(SideFault) as fault:
        side.load(f"import os\n{body}\n")
    assert "RuntimeError" in fault.value.fault.detail
    assert not [w for w in ("/usr/bin", "C.UTF-8", "inductor") if w in fault.value.fault.detail]


def test_names_of_parameters_are_strict(rig: Rig) -> None:
    """A parameter left out or renamed is found before anything runs."""
    source = "from torch import nn\nclass ModelNew(nn.Linear):\n    pass"
    with rig.side() as side:
        side.load(source)
        with pytest.raises(SideFault) as fault:
            side.construct([4, 4], {"weight": torch.ones(4, 4)})
    assert "adds bias" in fault.value.fault.detail


def test_addresses_and_strides_stay(rig: Rig) -> None:
    """Inputs are overwritten in place, also those that are not contiguous."""
    source = WRAP.format(
        body="return torch.tensor([x.data_ptr()]), torch.tensor(x.stride()), x * 1"
    )
    with rig.side() as side:
        side.load(source)
        side.construct([], {})
        answers = []
        for k in range(2):
            side.inputs([[torch.full((5, 3), float(k)).t()]])
            answers.append([side.read(p) for p in side.call()])
    first, second = answers
    assert same(first[:2], second[:2])
    assert second[1].tolist() == [1, 3]  # type: ignore[attr-defined]
    assert (second[2] == 1).all()  # type: ignore[attr-defined]


def test_a_frozen_child_uses_no_time(rig: Rig) -> None:
    """Neither its threads nor its subprocesses run while it waits."""
    burn = "import subprocess, threading\nsubprocess.Popen(['sh', '-c', 'while :; do :; done'])\n"
    thread = "def f():\n    while True: pass\nthreading.Thread(target=f, daemon=True).start()\n"
    with rig.side() as side:
        side.load(burn + thread + WRAP.format(body="return x"))
        time.sleep(0.1)
        side.freeze()
        before = side.child.cpu_ns()
        assert before > 0
        time.sleep(0.2)
        assert side.child.cpu_ns() == before
        side.thaw()
        side.construct([], {})
        assert side.child.cpu_ns() > before


def test_a_child_that_was_frozen_late_goes_on(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under load the group stands still only after signals were sent as well: both are undone."""
    real = Group.freeze

    def late(group: Group, *, on: bool) -> bool:
        return real(group, on=on) and not on

    with rig.side() as side:
        side.load(WRAP.format(body="return x"))
        monkeypatch.setattr(Group, "freeze", late)
        side.freeze()
        monkeypatch.undo()
        side.thaw()
        began = time.monotonic()
        side.construct([], {})
        assert time.monotonic() - began < 5


def test_a_forged_address_is_no_crash_of_the_judge(rig: Rig) -> None:
    """A driver that lies about where its output is gets a verdict."""
    lie = """
import targets.remote.child as c
place = dict(type="tensor", dtype="float32", shape=[4], strides=[1], address=8, bytes=16)
c.described = lambda *_: [place]
"""
    with rig.side() as side:
        side.load(lie + WRAP.format(body="return x"))
        side.construct([], {})
        side.inputs([[torch.ones(4)]])
        with pytest.raises(SideFault) as fault:
            side.read(side.call()[0])
    assert fault.value.fault.status is RunStatus.FORGED


def test_a_hang_on_a_slow_judge_is_still_a_hang(rig: Rig) -> None:
    """Time is up because the judge was slow, but the child let it wait longer than any call may."""
    for call_s, blamed in ((0.5, SideFault), (30.0, MachineError)):
        with rig.side(call_s=call_s) as side:
            side.load(WRAP.format(body="time.sleep(600)"))
            side.construct([], {})
            side.inputs([[torch.ones(4)]])
            side.allowance = Allowance(SECONDS)
            side.allowance._over = time.monotonic() + 1.0
            with pytest.raises(blamed):
                side.call(first=True)


def test_what_a_child_waited_for_is_counted_before_blame(rig: Rig) -> None:
    """The last wait belongs to the child's time too."""
    with rig.side() as side:
        side.load(WRAP.format(body="time.sleep(600)"))
        side.construct([], {})
        side.inputs([[torch.ones(4)]])
        side.allowance = Allowance(1.0)
        side.allowance._over = time.monotonic() + 0.95
        with pytest.raises(SideFault) as fault:
            side.call(first=True)
    assert fault.value.fault.status is RunStatus.TIMED_OUT
