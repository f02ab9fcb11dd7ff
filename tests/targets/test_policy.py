"""Whose code made the answer."""

import pytest
import torch

from tests.targets.rig import KERNEL, Rig

BODIES = {
    "honest": ("o = torch.empty_like(x); K.add(args=(x, y, o, x.numel())); return o", True),
    "own, then torch": (
        "o = torch.empty_like(x); K.add(args=(x, y, o, x.numel())); return o * 1.0",
        True,
    ),
    "over a clone": (
        "o = x.clone(); K.add(args=(x, y, o, x.numel())); return o",
        True,
    ),
    "into zeros": ("o = torch.zeros_like(x); K.add(args=(x, y, o, x.numel())); return o", True),
    "a view of it": (
        "o = torch.empty(1, *x.shape); K.add(args=(x, y, o, x.numel())); return o[0]",
        True,
    ),
    "kept buffer": (
        (
            "self.o = getattr(self, 'o', None); self.o = torch.empty_like(x) if self.o is None"
            " else self.o; K.add(args=(x, y, self.o, x.numel())); return self.o"
        ),
        True,
    ),
    "torch alone": ("return x + 2.0 * y", False),
    "torch into empty": (
        "o = torch.empty_like(x); torch.add(x, y, alpha=2.0, out=o); return o",
        False,
    ),
    "decoy": (
        "o = torch.empty_like(x); K.add(args=(x, y, o, x.numel())); return x + 2.0 * y",
        False,
    ),
    "decoy, overwritten": (
        "o = torch.empty_like(x); K.add(args=(x, y, o, x.numel())); o.copy_(x + 2.0 * y); return o",
        False,
    ),
    "in a thread": (
        (
            "import concurrent.futures as c; p = c.ThreadPoolExecutor(1);"
            " return p.submit(lambda: x + 2.0 * y).result()"
        ),
        False,
    ),
    "compiled": ("return torch.compile(lambda a, b: a + 2.0 * b)(x, y)", False),
    "scripted": ("return torch.jit.script(plain)(x, y)", False),
    "constant of the source": ("return x + torch.tensor(2.0) * y", False),
}


@pytest.mark.parametrize("name", BODIES)
def test_memory_tells_whose_work_it_is(rig: Rig, name: str) -> None:
    """Only memory that other code than ATen wrote counts, and only where it reaches the output."""
    body, authored = BODIES[name]
    plain = "def plain(a, b):\n    return a + 2.0 * b\n"
    head = "class ModelNew(nn.Module):\n    def forward(self, x, y):"
    source = f"{KERNEL}\n{plain}\n{head}\n        {body}\n"
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    with rig.side() as side:
        side.watch()
        side.load(source)
        side.construct([], {})
        side.inputs([[x, y]])
        places, ops, found = side.trace()
        answer = side.read(places[0])
    assert isinstance(answer, torch.Tensor)
    assert torch.allclose(answer, x + 2.0 * y)
    assert found is authored
    assert bool(ops) is (not authored or "torch" in name)
