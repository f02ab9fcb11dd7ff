"""Whose work an answer is, and whose kernels a candidate sees."""

import os
import shutil

import pytest

from data.records import BuildResult, Contract, LibraryPolicy, Operator
from targets.remote.build import build
from targets.remote.compiler import library_folder
from tests.targets.rig import ADD, CPU, KERNEL, Rig

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

HEAD = "class ModelNew(nn.Module):\n    def forward(self, x, y):\n        o = torch.empty_like(x)\n"
CALL = "        K.add(args=(x, y, o, x.numel()))\n"


def built(rig: Rig, source: str) -> BuildResult:
    return build(Operator(name="op", source=ADD), source, CPU, zygote=None, cache=rig.folder)


@pytest.mark.parametrize(
    ("end", "authored", "review"),
    [
        ("return o", True, ""),
        ("return o * 1.0", True, ""),
        ("return o.mul_(0.0).add_(x).add_(y, alpha=2.0)", False, ""),
        ("return torch.where(o > 1e30, o, x + 2.0 * y)", False, ""),
        ("return o if o[0, 0].item() < 1e6 else x + 2.0 * y", True, "fallback"),
    ],
    ids=["kernel", "kernel, then torch", "overwritten by sums", "masked out", "fallback"],
)
def test_a_kernel_must_matter(rig: Rig, end: str, review: str, *, authored: bool) -> None:
    """A kernel that runs, and without which the same library calls are right, is a decoy."""
    source = f"{KERNEL}\n{HEAD}{CALL}        {end}\n"
    assert built(rig, source).ok
    result = rig.measure(source)
    assert result.authored is authored, result
    assert review in "; ".join(result.review)


def test_where_library_calls_are_allowed_nobody_asks(rig: Rig) -> None:
    """No child is spent on a question that decides nothing."""
    source = f"{KERNEL}\n{HEAD}{CALL}        return o.mul_(0.0).add_(x).add_(y, alpha=2.0)\n"
    assert built(rig, source).ok
    result = rig.measure(source, contract=Contract(library=LibraryPolicy.ALLOWED))
    assert result.authored is True


def test_a_candidate_sees_its_own_kernels_alone(rig: Rig) -> None:
    """Neither another one's products nor the list of its sources can be read."""
    other = KERNEL.replace("2.0f", "3.0f")
    assert built(rig, other).ok
    folder = library_folder(rig.folder, CPU)
    look = f"""
import glob, os
import kforge_launch
seen = len(glob.glob(str(kforge_launch._folder) + '/*')), os.path.exists({str(folder)!r})
assert seen == (1, False), seen
"""
    source = f"{KERNEL}\n{look}\n{HEAD}{CALL}        return o\n"
    recorded = source.replace("seen ==", "kforge_launch._folder is None or seen ==")
    assert built(rig, recorded).ok
    result = rig.measure(recorded)
    assert result.authored is True, result
    assert not list((rig.folder / "kept").glob(f"{os.getpid()}-*"))


def test_products_belong_to_the_judge(rig: Rig) -> None:
    """The compiler runs as a candidate's user; what it made is copied, not moved."""
    assert built(rig, KERNEL).ok
    made = list(library_folder(rig.folder, CPU).glob("*.so"))
    assert made
    assert all(p.stat().st_uid == os.getuid() for p in made)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_build_phase_runs_as_nobody_else_does(rig: Rig) -> None:
    """An import sees neither root's name nor our environment."""
    told = (
        "import os, kforge_launch\n"
        "raise ValueError(sorted(os.environ), open('/proc/self/status').read().split('Uid')[1][:9],"
        " os.path.exists('/etc/shadow'))\n"
    )
    result = built(rig, told)
    assert "False)" in result.detail, result.detail
    assert "['HOME', 'LC_ALL', 'PATH', 'TMPDIR']" in result.detail
