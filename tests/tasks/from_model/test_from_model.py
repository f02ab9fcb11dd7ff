"""A model's operators as files."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from data.operator import read_operator
from flows.cli import run
from targets.remote.operator import LoadedOperator
from targets.remote.sizing import sizes

BLOCK = Path(__file__).with_name("block.py")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operators of a small transformer."""
    folder = tmp_path_factory.mktemp("model") / "operators"
    assert run(["operators", "from-model", str(BLOCK), str(folder)]) == 0
    return folder


def test_every_operator_that_takes_time_is_a_file_or_named(written: Path) -> None:
    """Shares add up to all of it; randomness is the only thing that has no file here."""
    rows = json.loads((written / "profile.json").read_text())
    assert sum(row["share"] for row in rows) == pytest.approx(1.0, abs=0.01)
    assert [row["share"] for row in rows] == sorted((r["share"] for r in rows), reverse=True)
    named = {row["op"]: row["why_not"] for row in rows if not row["file"]}
    assert named == {
        "aten.multinomial.default": "it draws random numbers",
        "aten.dropout.default": "it draws random numbers",
    }
    files = {row["file"] for row in rows if row["file"]}
    assert files == {path.name for path in written.glob("*.py")}
    assert {"linear.py", "layer_norm.py", "scaled_dot_product_attention.py"} <= files


def test_calls_and_sizes_are_those_of_the_model(written: Path) -> None:
    """Two layers with four products each, of four sizes; parameters are told from inputs."""
    rows = json.loads((written / "profile.json").read_text())
    (row,) = [r for r in rows if r["op"] == "aten.linear.default"]
    assert row["calls"] == 8
    assert "float32[2, 64, 128], float32[384, 128], float32[384]" in row["shapes"]
    loaded = LoadedOperator(read_operator(written / "linear.py"))
    assert len(loaded.shapes) == 4
    found = {sizes(loaded, shape).outputs[0].shape for shape in loaded.shapes}
    assert found == {(2, 64, 384), (2, 64, 128), (2, 64, 512)}
    assert len(sizes(loaded, "full").parameters) == 2


def test_each_file_computes_at_each_of_its_sizes(written: Path) -> None:
    """The values that are drawn are ones that the operator takes: no NaN, no index out of range."""
    for path in written.glob("*.py"):
        loaded = LoadedOperator(read_operator(path))
        for shape in loaded.shapes:
            with torch.no_grad():
                result = loaded.model(shape, 1)(*loaded.inputs(shape, 2))
            assert torch.isfinite(result).all(), path.name


def test_a_file_is_the_same_in_the_next_profile(written: Path, tmp_path: Path) -> None:
    """Times vary; the operator's hash in the ledger must not."""
    assert run(["operators", "from-model", str(BLOCK), str(tmp_path / "again")]) == 0
    for name in ("gelu.py", "layer_norm.py", "scaled_dot_product_attention.py"):
        assert (tmp_path / "again" / name).read_text() == (written / name).read_text()


def test_top_limits_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The longest come first; --json has an object a line."""
    words = ["operators", "from-model", str(BLOCK), str(tmp_path / "few"), "--top", "2", "--json"]
    assert run(words) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len([row for row in rows if row["file"]]) == 2
    assert len(list((tmp_path / "few").glob("*.py"))) == 2


def test_a_model_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    """A real model is seldom one file."""
    shutil.copy(BLOCK, tmp_path / "neighbour_of_block.py")
    (tmp_path / "model.py").write_text("from neighbour_of_block import *\n" + INPUTS)
    assert run(["operators", "from-model", str(tmp_path / "model.py"), str(tmp_path / "out")]) == 0


INPUTS = """
from neighbour_of_block import Model, get_init_inputs
def get_inputs(): return [torch.randint(0, 1000, (1, 8))]
"""
LOOKING = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return x if x.sum() > 0 else x.relu()
def get_inputs(): return [torch.randn(4)]
def get_init_inputs(): return []
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [("x = 1", "is not an operator"), (LOOKING, "torch.export fails"), (None, "does not exist")],
)
def test_what_is_no_model_is_one_line(
    text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written; the line says what is amiss."""
    if text is not None:
        (tmp_path / "model.py").write_text(text)
    words = ["operators", "from-model", str(tmp_path / "model.py"), str(tmp_path / "out")]
    assert run(words) in {1, 2}
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.e2e
def test_the_files_are_admitted(written: Path, tmp_path: Path) -> None:
    """The judge can tell right from wrong with them."""
    files = [str(written / name) for name in ("layer_norm.py", "linear.py")]
    assert run(["admit", *files, "--no-time", "--runs", str(tmp_path / "runs")]) == 0
