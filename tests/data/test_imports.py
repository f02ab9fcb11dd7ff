"""Results of other judges come in, carry what is known, and never count as ours."""

import json
from pathlib import Path

import duckdb
import pytest

from data.errors import MisuseError
from data.imports import take_in
from data.records import Operator
from data.store import Ledger
from data.upkeep import check
from data.verdict import Verdict
from data.views import query, question, questions
from data.volumes import gather
from flows.cli import run
from tests.data.samples import CPU, confirmed, plain

HARDWARE = "NVIDIA H100 PCIe"
CONFIG = """backend: cuda
level: 1
model_name: some/model
precision: fp32
run_name: greedy
temperature: 0.0
max_tokens: null
"""


def entry(**other: object) -> dict[str, object]:
    """As KernelBench's add_to_eval_results_file writes one."""
    return {
        "sample_id": 0,
        "compiled": True,
        "correctness": True,
        "metadata": {
            "hardware": HARDWARE,
            "device": "cuda:0",
            "correctness_trials": "(5 / 5)",
        },
        "runtime": 0.512,
        "runtime_stats": {"mean": 0.512, "std": 0.01, "hardware": HARDWARE, "num_trials": 100},
    } | other


def failed(**metadata: str) -> dict[str, object]:
    return {"hardware": HARDWARE, "device": "cuda:0", **metadata}


RESULTS = {
    "1": [entry()],
    "2": [
        entry(compiled=False, correctness=False, runtime=-1.0, runtime_stats={})
        | {"metadata": failed(compilation_error="nvcc: expected ';'\nat line 3")}
    ],
    "3": [
        entry(correctness=False, runtime=-1.0, runtime_stats={})
        | {"metadata": failed(correctness_issue="Output mismatch", correctness_trials="(0 / 5)")}
    ],
    "4": [
        entry(correctness=False, runtime=-1.0, runtime_stats={})
        | {"metadata": failed(runtime_error="CUDA error: illegal memory access")}
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """KernelBench's runs/ with one run: five kernels, four of them evaluated."""
    made = tmp_path / "bench" / "runs" / "greedy"
    made.mkdir(parents=True)
    (made / "generation_config.yaml").write_text(CONFIG)
    (made / "eval_results.json").write_text(json.dumps(RESULTS, indent=4))
    for problem in range(1, 6):
        name = f"level_1_problem_{problem}_sample_0_kernel.py"
        (made / name).write_text(f"class ModelNew: ...  # {problem}\n")
    return made.parent


def found(root: Path) -> list[dict[str, object]]:
    sql = "SELECT * EXCLUDE (record) FROM iterations WHERE execution = 'imported' ORDER BY operator"
    rows: list[dict[str, object]] = query(root, sql).to_pylist()
    return rows


def test_rows_carry_what_is_known_and_name_what_is_not(folder: Path, tmp_path: Path) -> None:
    """Source, model, device, verdict and times are there; baseline and contract are unknown."""
    root = tmp_path / "ledger"
    assert run(["ledger", "import", str(folder), "--runs", str(root)]) == 0
    rows = found(root)
    assert [r["verdict"] for r in rows] == [
        Verdict.UNVERIFIED,
        Verdict.BUILD_FAILED,
        Verdict.WRONG,
        Verdict.CRASHED,
        Verdict.UNVERIFIED,
    ]
    first, broken, *_, left = rows
    assert (first["contract"], first["baseline"], first["speedup"]) == ("unknown", None, None)
    assert (first["device"], first["vendor"], first["language"]) == (HARDWARE, "nvidia", "cuda")
    assert (first["model"], first["run_id"]) == ("some/model", "imported-greedy")
    assert first["source"] == "class ModelNew: ...  # 1\n"
    assert first["reason"] == (
        "KernelBench: right in trials (5 / 5), 0.512 ms; baseline and contract unknown"
    )
    assert json.loads(str(first["environment"]))["runtime_ms"] == "0.512"
    assert broken["reason"] == "KernelBench: nvcc: expected ';' at line 3"
    assert (left["device"], left["reason"]) == ("unknown", "KernelBench: not evaluated")


def test_imported_rows_never_mix_with_judged_ones(folder: Path, tmp_path: Path) -> None:
    """No question but `imported` changes its answer, even for the same device and operator."""
    root = tmp_path / "ledger"
    ledger = Ledger(root)
    operator = Operator(name="level1_1_x", source="class Model: x", level=1)
    for step in range(2):
        ledger.append(plain(step, operator=operator, device=CPU))
    ledger.append(confirmed(2, 1.5, operator=operator, device=CPU))
    other = [name for name in questions() if name != "imported"]
    before = {name: query(root, question(name)).to_pylist() for name in other}
    text = (folder / "greedy" / "eval_results.json").read_text().replace(HARDWARE, "cpu")
    (folder / "greedy" / "eval_results.json").write_text(text)
    assert take_in(root, folder, (operator,)).taken == 5
    assert {name: query(root, question(name)).to_pylist() for name in other} == before
    assert len(query(root, "FROM best").to_pylist()) == 1
    ours = {r["operator"]: r for r in query(root, question("imported")).to_pylist()}
    assert ours["level1_1_x"]["our_speedup"] == 1.5
    assert ours["level1_1_x"]["fastest_ms"] == 0.512
    assert ours["level1_2"]["our_speedup"] is None
    assert (ours["level1_1_x"]["right_there"], ours["level1_3"]["right_there"]) == (1, 0)


def test_importing_again_adds_what_is_new_alone(folder: Path, tmp_path: Path) -> None:
    """A run that grew is taken again; other results under the same name are refused."""
    root = tmp_path / "ledger"
    assert take_in(root, folder / "greedy").taken == 5
    assert (take_in(root, folder).taken, take_in(root, folder).known) == (0, 5)
    results = folder / "greedy" / "eval_results.json"
    results.write_text(json.dumps(RESULTS | {"7": [entry()]}))
    assert take_in(root, folder).taken == 1
    results.write_text(json.dumps(RESULTS | {"1": [entry(runtime=0.1)]}))
    with pytest.raises(MisuseError, match="another result for level1_1, sample 0; rename"):
        take_in(root, folder)
    gather(root)
    assert len(found(root)) == 6
    assert [(s.broken, s.lost) for s in check(root)] == [(0, 0)] * 4


def test_another_ledger_is_merged(tmp_path: Path) -> None:
    """Its rows were judged by a KForge, under contracts that they name."""
    root, other = tmp_path / "ledger", Ledger(tmp_path / "other")
    other.append(confirmed(0, 1.5))
    assert run(["ledger", "import", str(other.root), "--runs", str(root)]) == 0
    assert len(query(root, "FROM best").to_pylist()) == 1


@pytest.mark.parametrize("content", ["{", "[1]", '{"x": [{}]}', '{"1": [{"sample_id": "y"}]}'])
def test_results_that_are_none_are_one_line(
    folder: Path, tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is named, and nothing of the run is taken."""
    (folder / "greedy" / "eval_results.json").write_text(content)
    assert run(["ledger", "import", str(folder), "--runs", str(tmp_path / "ledger")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "eval_results.json" in told
    assert not (tmp_path / "ledger").exists()


def test_a_folder_with_neither_is_misuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one that does not exist."""
    for place in (tmp_path, tmp_path / "nothere"):
        assert run(["ledger", "import", str(place), "--runs", str(tmp_path / "ledger")]) == 2
        assert "neither a ledger nor a run of KernelBench" in capsys.readouterr().err


def test_attached_views_open_in_any_duckdb(tmp_path: Path) -> None:
    """Volumes are read where they lie; a second time takes later rows; foreign files stay."""
    ledger, out = Ledger(tmp_path / "it's runs"), tmp_path / "a.duckdb"
    ledger.append(confirmed(0, 1.5))
    gather(ledger.root)
    for steps in (1, 2):
        assert run(["ledger", "attach", str(out), "--runs", str(ledger.root)]) == 0
        with duckdb.connect(str(out), read_only=True) as connection:
            assert connection.sql("SELECT count(source) FROM iterations").fetchall() == [(steps,)]
            assert connection.sql("SELECT operators FROM fast_p").fetchall() == [(1,)]
        ledger.append(confirmed(1, 1.5))
    foreign = tmp_path / "mine.duckdb"
    foreign.write_text("mine")
    assert run(["ledger", "attach", str(foreign), "--runs", str(ledger.root)]) == 2
    assert foreign.read_text() == "mine"
    assert [p.name for p in tmp_path.glob("*.new*")] == []
