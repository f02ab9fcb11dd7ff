"""Cheats and honest kernels through the whole judge."""

import pytest

from data.records import Contract, LibraryPolicy, RunStatus, ShapePolicy
from tests.targets.rig import HONEST, KERNEL, LINEAR, Rig

HEAD = KERNEL + "import time, os, threading\n"
FORWARD = "class ModelNew(nn.Module):\n    def forward(self, x, y):\n"
REAL = "o = torch.empty_like(x); K.add(args=(x, y, o, x.numel()))"


def add(body: str, before: str = "") -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"{HEAD}{before}\n{FORWARD}{lines}\n"


CHEATS = {
    "cache by address": add(
        f"k = (x.data_ptr(), y.data_ptr())\nif k not in M: {REAL}; M[k] = o\nreturn M[k]", "M = {}"
    ),
    "cache by content fingerprint": add(
        f"k = tuple(x.view(-1)[::97].tolist())\nif k not in M: {REAL}; M[k] = o\nreturn M[k]",
        "M = {}",
    ),
    "cache by a sum": add(
        f"k = int((x * 1024).long().sum())\nif k not in M: {REAL}; M[k] = o\nreturn M[k]",
        "M = {}",
    ),
    "writes past its output": add(
        "o = torch.empty_like(x); K.add(args=(x, y, o, x.numel() + 1)); return o"
    ),
    "half of fresh memory": add("o = torch.empty_like(x)\nreturn torch.maximum(o, x + 2 * y)"),
    "zeros": add("return torch.zeros_like(x)"),
    "last row unwritten": add(
        "o = torch.empty_like(x); K.add(args=(x, y, o, x.numel() - 96)); return o"
    ),
    "rarely wrong": add(
        f"{REAL}\nM.append(0)\nif len(M) % 7 == 0: o[3, 5] += 0.1\nreturn o", "M = []"
    ),
    "half precision": add(f"{REAL}\nreturn o.bfloat16().float()"),
    "nan": add(f"{REAL}\no[0, 0] = float('nan')\nreturn o"),
    "broadcast shape": add(f"{REAL}\nreturn o[None]"),
    "other dtype": add(f"{REAL}\nreturn o.double()"),
    "one output too many": add(f"{REAL}\nreturn o, o"),
    "writes its input": add(f"{REAL}\nx.zero_()\nreturn o"),
    "patched comparison": add("return x", "torch.allclose = torch.equal = lambda *a, **k: True"),
    "late thread": add(
        f"{REAL}\nr = o.clone(); o.zero_()\n"
        "def f(): time.sleep(0.02); o.copy_(r)\n"
        "threading.Thread(target=f).start()\nreturn o"
    ),
    "report and exit": add("print('{\"correct\": true}', flush=True); os._exit(0)"),
}
NAMES = {
    "broadcast shape": RunStatus.BAD_STRUCTURE,
    "other dtype": RunStatus.BAD_STRUCTURE,
    "one output too many": RunStatus.BAD_STRUCTURE,
    "writes its input": RunStatus.INPUT_CHANGED,
    "report and exit": RunStatus.FORGED,
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_found(rig: Rig, name: str) -> None:
    """Each with the status that names it."""
    result = rig.measure(CHEATS[name])
    assert result.status is NAMES.get(name, RunStatus.WRONG), result
    assert result.detail


def test_an_honest_kernel_is_right_and_its_own(rig: Rig) -> None:
    """No false alarm, nothing flagged, the rung on record."""
    result = rig.measure(HONEST)
    assert result.status is RunStatus.RAN, result.detail
    assert result.authored is True
    assert result.library_ops == ()
    assert result.review == ()
    assert result.isolation
    assert len(result.draws) >= 3


def test_weights_packed_once_are_found(rig: Rig) -> None:
    """Parameters change between calls, in place and by load_state_dict."""
    body = (
        "import torch\nfrom torch import nn\nclass ModelNew(nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n"
        "        self.linear = nn.Linear(width, 8)\n        self.w = None\n"
        "    def forward(self, x):\n"
        "        if self.w is None: self.w = self.linear.weight.detach().clone()\n"
        "        return torch.relu(torch.nn.functional.linear(x, {w}, self.linear.bias))\n"
    )
    assert rig.measure(body.format(w="self.w"), LINEAR).status is RunStatus.WRONG
    fair = rig.measure(body.format(w="self.linear.weight"), LINEAR)
    assert fair.status is RunStatus.RAN, fair.detail
    assert fair.authored is False


def test_a_parameter_left_out_is_found(rig: Rig) -> None:
    """Names are strict, and a bias that is not used shows."""
    source = (
        "import torch\nfrom torch import nn\nclass ModelNew(nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n"
        "        self.linear = nn.Linear(width, 8, bias={bias})\n"
        "    def forward(self, x):\n        return torch.relu(x @ self.linear.weight.t())\n"
    )
    assert rig.measure(source.format(bias=False), LINEAR).status is RunStatus.BAD_STRUCTURE
    assert rig.measure(source.format(bias=True), LINEAR).status is RunStatus.WRONG


def test_a_family_needs_further_shapes(rig: Rig) -> None:
    """Sizes baked in are legal for one shape only."""
    source = add(f"if x.shape != (64, 96): return torch.zeros_like(x)\n{REAL}\nreturn o")
    assert rig.measure(source).status is RunStatus.RAN
    family = Contract(shapes=ShapePolicy.FAMILY)
    assert rig.measure(source, contract=family).status is RunStatus.WRONG
    assert rig.measure(HONEST, contract=family).status is RunStatus.RAN


def test_a_hang_is_a_verdict_not_an_error(rig: Rig) -> None:
    """The deadline comes from outside."""
    result = rig.measure(add("time.sleep(600)"), deadline_s=4.0)
    assert result.status is RunStatus.TIMED_OUT
    assert result.seconds < 8.0


def test_library_policy_hides_no_fault(rig: Rig) -> None:
    """Evidence does not depend on the policy."""
    free = Contract(library=LibraryPolicy.ALLOWED)
    assert rig.measure(CHEATS["cache by address"], contract=free).status is RunStatus.WRONG


def test_slow_candidate_is_spared_no_draw(rig: Rig) -> None:
    """Sleeping through half of the deadline would have left the first draw alone."""
    body = f"M.append(0)\nif len(M) == 1: time.sleep(8)\n{REAL}\n"
    wrong = add(body + "o[o > 80] = 0\nreturn o", "M = []")
    assert rig.measure(wrong, deadline_s=15.0).status is RunStatus.WRONG
