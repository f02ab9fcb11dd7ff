"""The Triton example: compiled for each architecture without a device, run by the interpreter."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from targets.brief import EXAMPLES

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None,
    reason="needs triton: pip install --no-deps triton==3.7.0",
)
COMPILE = """
import importlib.util, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
spec = importlib.util.spec_from_file_location("example", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
types = dict.fromkeys(("x", "weight", "y"), "*fp32") | {"columns": "i32", "eps": "fp32"}
source = ASTSource(module.squared_relu_unit, {**types, "BLOCK": "constexpr"}, {"BLOCK": 1024})
built = triton.compile(source, target=GPUTarget("cuda", int(sys.argv[2]), 32))
print(built.asm["cubin"][:4] == b"\\x7fELF", built.metadata.shared)
"""
RUN = """
import importlib.util, sys
import torch
spec = importlib.util.spec_from_file_location("example", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
space = {}
exec(open(sys.argv[2]).read(), space)
torch.manual_seed(0)
for rows, columns in ((3, 1000), (2, 33), (1, 1), (2, 5000)):
    reference, candidate = space["Model"](columns), module.ModelNew(columns)
    state = {k: torch.randn_like(v) for k, v in reference.state_dict().items()}
    reference.load_state_dict(state), candidate.load_state_dict(state)
    x = torch.randn(rows, columns)
    expected = reference.double()(x.double())
    torch.testing.assert_close(candidate(x).double(), expected, rtol=1e-5, atol=1e-6)
print("same")
"""
KERNEL = EXAMPLES / "triton" / "kernel.py"


def _python(folder: Path, script: str, *words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        env={**os.environ, "TRITON_CACHE_DIR": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-800:]
    return done.stdout.strip()


@pytest.mark.parametrize("capability", [80, 90, 100, 120])
def test_example_compiles_without_a_device(tmp_path: Path, capability: int) -> None:
    """Triton makes machine code for each generation and says how much shared memory it takes."""
    elf, shared = _python(tmp_path, COMPILE, str(KERNEL), str(capability)).split()
    assert elf == "True"
    assert int(shared) < 48 << 10


def test_example_is_right_in_the_interpreter(tmp_path: Path) -> None:
    """What a generator is shown computes its operator, sizes that fill no block included."""
    operator = EXAMPLES / "cpu" / "operator.py"
    assert _python(tmp_path, RUN, str(KERNEL), str(operator), TRITON_INTERPRET="1") == "same"
