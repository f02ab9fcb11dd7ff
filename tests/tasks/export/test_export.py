"""A package from the ledger to a fresh virtual environment that has torch alone."""

import json
import re
import shlex
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from data.champions import champions
from flows.cli import run
from tests.tasks.export.ledgers import ARGMAX, ARGMAX_KERNEL, argmax, kernel, ledger

DOCS = Path(__file__).parents[3] / "docs"
EXAMPLES = DOCS / "examples" / "ledger"
HERE = Path(__file__).parent


def exported(runs: Path, folder: Path, *words: str) -> int:
    return run(["export", "--device", "cpu", "--runs", str(runs), str(folder), *words])


def test_a_package_says_what_it_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files, both names of the kernel, and the line that goes on."""
    runs = ledger(tmp_path / "runs", argmax())
    assert exported(runs, tmp_path / "my-kernels", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["package"] == "my_kernels"
    assert told["kernels"] == ["row_best_cpu"]
    folder = tmp_path / "my-kernels"
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert {
        "LICENSE",
        "README.md",
        "VERIFICATION.md",
        "pyproject.toml",
        "my_kernels/kernels/row_best_cpu.py",
        "my_kernels/operators/row_best.py",
        "tests/test_package.py",
    } <= files
    for path in folder.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")


def test_verification_names_device_versions_draws_and_interval(tmp_path: Path) -> None:
    """Whoever installs it can see what a figure rests on."""
    assert exported(EXAMPLES, tmp_path / "one", "--operator", "layer_norm") == 0
    page = (tmp_path / "one" / "VERIFICATION.md").read_text()
    for part in (
        "**FASTER**",
        "1.31x [1.22, 1.41]",
        "over eager",
        "strict/flagged/fixed",
        "torch 2.13.0+cpu",
        "g++ (Debian 12.2.0",
        "2026-11-30 23:42 UTC",
        "| small | float32[67, 769] | 32 right |",
        "What was not verified",
    ):
        assert part in page


def test_a_size_at_which_pytorch_is_faster_is_left_to_it(tmp_path: Path) -> None:
    """No regression is shipped: the kernel's entry lacks the size, the page says why."""
    runs = EXAMPLES
    words = ["export", "--device", "h200", "--runs", str(runs), str(tmp_path / "gpu")]
    assert run(words) == 0
    (entry,) = [
        e
        for e in json.loads((tmp_path / "gpu" / "gpu" / "kernels.json").read_text())
        if e["operator"] == "kl_div"
    ]
    assert [case["shape"] for case in entry["cases"]] == ["small", "many"]
    assert (entry["place"], entry["card"]) == ("cuda", "NVIDIA H200")
    page = (tmp_path / "gpu" / "VERIFICATION.md").read_text()
    assert "no: PyTorch is faster" in page
    assert "cumsum@h200: it is slower than its baseline: 0.36x" in page


DROPOUT = ARGMAX.replace("x.max(", "nn.functional.relu(self.d(x)).max(").replace(
    "    def forward",
    "    def __init__(self):\n        super().__init__()\n        self.d = nn.Dropout(0.5)\n\n"
    "    def forward",
)
MODAL = ARGMAX.replace("best = x.max(", "x = x * 2 if self.training else x\n        best = x.max(")
NESTED = ARGMAX.replace("return best.indices, best.values > 0", 'return {"a": best.indices}')


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (DROPOUT, "it has dropout"),
        (MODAL, "in training and out of it"),
        (NESTED, "it returns a dict"),
        (
            ARGMAX.replace("[torch.randn(rows, cols)]", "[torch.randn(rows, cols), 2]").replace(
                "self, x", "self, x, k"
            ),
            "more than tensors",
        ),
        (ARGMAX, "it defines signatures"),
    ],
)
def test_what_a_package_cannot_have_is_named(
    source: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are written; one that was asked for by name ends in one line and code 1."""
    bad = ARGMAX_KERNEL + ("\nsignatures = 1\n" if source is ARGMAX else "")
    runs = ledger(tmp_path / "runs", argmax(), kernel("odd", source, bad))
    assert exported(runs, tmp_path / "some") == 0
    said = capsys.readouterr()
    assert "package some with row_best_cpu\n" in said.out
    assert "left out odd@cpu: " in said.err
    assert why in said.err
    assert exported(runs, tmp_path / "none", "--operator", "odd") == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert why in said.err
    assert not (tmp_path / "none").exists()


def test_the_page_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The console of docs/export.md, run where the checkout's docs are."""
    page = (DOCS / "export.md").read_text()
    ((command, output),) = re.findall(
        r"^```console\n\$ (.*?)\n(.*?)^```", page, re.DOTALL | re.MULTILINE
    )
    (tmp_path / "docs").symlink_to(DOCS)
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out == output


@pytest.mark.parametrize(
    ("folder", "said"),
    [("taken", "not empty"), ("json", "cannot be called 'json'"), ("2fast", "cannot be called")],
)
def test_a_folder_that_cannot_be_the_package_is_misuse(
    folder: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is overwritten, and the name can be imported."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    assert exported(ledger(tmp_path / "runs", argmax()), tmp_path / folder) == 2
    assert said in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "taken").iterdir()] == ["file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Venv:
    """An environment that has torch, pip and the package, and nothing of ours."""

    python: Path
    package: Path
    home: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, *words],
            cwd=self.home,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """The package of two devices, installed from its folder without a network."""
    folder = tmp_path_factory.mktemp("venv")
    wanted = dict.fromkeys(("mish", "layer_norm", "fused_add_rms_norm"), "cpu") | {"kl_div": "h200"}
    known = champions(EXAMPLES)
    recorded = [c for c in known if wanted.get(c.operator.name) == c.device.name]
    runs, package = ledger(folder / "runs", argmax(), *recorded), folder / "kforge_two"
    assert exported(runs, package, "--device", "h200") == 0
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "v"], check=True)
    (site,) = (folder / "v").glob("lib/*/site-packages")
    (site / "torch.pth").write_text(sysconfig.get_path("purelib"))
    made = Venv(python=folder / "v/bin/python", package=package, home=folder)
    installed = made.run("-m", "pip", "install", "--quiet", "--no-index", str(package))
    assert installed.returncode == 0, installed.stderr
    return made


@pytest.mark.e2e
def test_an_installed_package_passes_its_own_tests(venv: Venv) -> None:
    """Right, with fake tensors, under torch.compile without a break; falls back or raises."""
    done = venv.run("-m", "unittest", "discover", "-s", str(venv.package / "tests"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Ran 6 tests" in done.stderr


@pytest.mark.e2e
def test_a_model_is_patched_and_unpatched(venv: Venv) -> None:
    """What computes the same gets a kernel, and nothing else does."""
    done = venv.run(str(HERE / "uses.py"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "done\n"


@pytest.mark.e2e
def test_a_damaged_kernel_is_seen_by_the_verification(venv: Venv) -> None:
    """Exit code 0 and a line a size; 1 once a kernel is off; one that cannot be built is named."""
    right = venv.run("-m", "kforge_two", "verify", "--operator", "row_best", "--seed", "3")
    assert right.returncode == 0, right.stderr
    assert right.stdout.splitlines()[-1] == "2 right, 0 wrong, 0 not run"
    (folder,) = (venv.home / "v").glob("lib/*/site-packages/kforge_two/kernels")
    for name, old, new in (
        ("row_best", "index[r] = k;", "index[r] = k + (r == 3);"),
        ("mish", 'extern "C" void', 'extern "C" nothing void'),
    ):
        file = folder / f"{name}_cpu.py"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
    words = ("--operator", "row_best", "--operator", "mish", "--operator", "kl_div")
    wrong = venv.run("-m", "kforge_two", "verify", *words)
    assert wrong.returncode == 1
    assert "of the elements differ" in wrong.stdout
    assert "mish_cpu cannot be built here" in wrong.stdout
    assert "no cuda device here" in wrong.stdout
    assert wrong.stdout.splitlines()[-1].startswith("0 right, 2 wrong, ")
