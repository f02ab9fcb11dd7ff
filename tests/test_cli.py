"""The command as people type it: exit codes, one-line errors, quick starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from data.store import Ledger
from flows.cli import run
from tests.data.samples import confirmed, plain

KFORGE = Path(sys.executable).with_name("kforge")


def kforge(
    *words: str | Path, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the installed command."""
    return subprocess.run(
        [KFORGE, *words],
        check=False,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
    )


RELU = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x)
def get_inputs(): return [torch.randn(4)]
def get_init_inputs(): return []
"""
MISUSE: dict[str, tuple[list[str], str]] = {
    "no command": ([], ""),
    "unknown command": (["prot"], "prot"),
    "unknown option": (["port", "--devise", "cpu"], "--devise"),
    "no device": (["port", "softmax"], "--device"),
    "unknown device": (["port", "--device", "b2000"], "unknown device 'b2000'; known: a100, "),
    "unknown contract": (["port", "--device", "cpu", "--contract", "fast"], "strict"),
    "unknown engine": (["port", "--device", "cpu", "--engine", "ray"], "prefect"),
    "steps": (["port", "--device", "cpu", "--steps", "0"], "--steps"),
    "bad epoch": (["port", "--device", "cpu", "--epoch", "a b"], "--epoch"),
    "llm without model": (["port", "--device", "cpu", "--agents", "llm"], "--model"),
    "model without llm": (["port", "--device", "cpu", "--model", "m"], "--agents llm"),
    "dry run without a model": (
        ["port", "relu.py", "--device", "cpu", "--dry-run"],
        "--agents llm",
    ),
    "crew that is not there": (["port", "--device", "cpu", "--crew", "c.toml"], "c.toml"),
    "suite without operators": (["port", "--device", "cpu", "--suite", "empty"], "empty"),
    "suite that is not there": (["port", "--device", "cpu", "--suite", "nowhere"], "nowhere"),
    "not an operator": (["port", "plain.py", "--device", "cpu"], "plain.py"),
    "start that is not there": (["port", "--device", "cpu", "--start", "k.cu"], "k.cu"),
    "include that is not a folder": (["port", "--device", "cpu", "--include", "i"], "not a folder"),
    "nothing to judge": (["judge"], "candidate"),
    "judge without operator": (["judge", "plain.py"], "--operator"),
    "judge what is not there": (["judge", "no.py", "--operator", "softmax"], "no.py"),
    "pairs that are none": (["judge", "--pairs", "plain.py"], "plain.py:1"),
    "pairs and a candidate": (["judge", "plain.py", "--pairs", "plain.py"], "--pairs"),
    "judge on an unknown device": (
        ["judge", "plain.py", "--operator", "relu.py", "--device", "x"],
        "unknown device 'x'",
    ),
    "admit what is not known": (["admit", "sofmax"], "softmax"),
    "admit on an unknown device": (["admit", "softmax", "--device", "x"], "unknown device 'x'"),
    "no ledger": (["query", "FROM best", "--runs", "nowhere"], "no ledger in nowhere"),
    "export without a ledger": (
        ["export", "--device", "cpu", "out", "--runs", "nowhere"],
        "no ledger in nowhere",
    ),
    "export of a kernel that nobody confirmed": (
        ["export", "--device", "cpu", "out", "--runs", "ledger"],
        "no confirmed kernel on 'cpu'",
    ),
    "a model that is not there": (["operators", "from-model", "m.py", "out"], "m.py does not"),
    "unknown question": (
        ["query", "worst"],
        "unknown query 'worst'; known: accepted, authors, best, ",
    ),
    "query of nothing": (["query"], "--file"),
    "query file that is not there": (["query", "--file", "q.sql"], "cannot read q.sql"),
    "bad SQL": (["query", "selec 1", "--runs", "ledger"], "selec"),
    "json and csv": (["query", "select 1", "--json", "--csv"], "--csv"),
    "nothing on record": (["show", "softmax@cpu"], "nothing is on record"),
}


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_is_exit_2_and_one_line(
    case: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What cannot be meant ends with code 2 and names the word at fault."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "ledger" / "iterations").mkdir(parents=True)
    (tmp_path / "plain.py").write_text("x = 1\n")
    (tmp_path / "relu.py").write_text(RELU)
    monkeypatch.chdir(tmp_path)
    words, named = MISUSE[case]
    assert run(words) == 2
    said = capsys.readouterr().err
    assert named in said
    assert said.count("\n") == (1 if words else 0)


def test_the_installed_command_ends_with_the_code(tmp_path: Path) -> None:
    """The console script passes the code on and keeps stdout clean."""
    done = kforge("port", "--devise", "cpu", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("kforge: No such option: --devise")


def test_nothing_is_written_when_the_command_is_misused(tmp_path: Path) -> None:
    """A typing error leaves no folder behind."""
    kforge("port", "--device", "b2000", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_ledger_is_exit_1(tmp_path: Path) -> None:
    """A file stands where the folder should be: the world's fault, said in one line."""
    (tmp_path / "runs").write_text("")
    done = kforge("port", "softmax", "--device", "cpu", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "runs" in done.stderr


def test_a_dead_prefect_server_is_exit_1_and_names_the_way_out(tmp_path: Path) -> None:
    """With PREFECT_API_URL set none is started; the password in it is not shown."""
    url = "http://user:secret@127.0.0.1:9/api"
    done = kforge("port", "softmax", "--device", "cpu", cwd=tmp_path, env={"PREFECT_API_URL": url})
    assert done.returncode == 1
    assert "127.0.0.1:9/api" in done.stderr
    assert "--engine local" in done.stderr
    assert "secret" not in done.stderr
    assert not (tmp_path / "runs" / ".prefect").exists()


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    """Where it comes from is for those who ask."""
    done = kforge("query", "selec", "--debug", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    "words", [["--help"], ["query", "select 1"], ["show", "relu@cpu"], ["devices"]]
)
def test_quick_commands_import_nothing_heavy(words: list[str], tmp_path: Path) -> None:
    """Help, a query, a story and the devices need no torch, no Prefect and no litellm."""
    Ledger(tmp_path / "runs").append(plain())
    code = (
        "import sys; from flows.cli import run; code = run(sys.argv[1:]);"
        "heavy = {'torch', 'prefect', 'litellm', 'boto3'} & set(sys.modules);"
        "sys.exit(f'{code} {heavy}' if code or heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_json_is_one_object_a_line(tmp_path: Path) -> None:
    """Machines read stdout line by line."""
    Ledger(tmp_path / "runs").append(plain(0))
    Ledger(tmp_path / "runs").append(plain(1))
    done = kforge("query", "select step, techniques from iterations", "--json", cwd=tmp_path)
    steps = {json.loads(line)["step"] for line in done.stdout.splitlines()}
    assert steps == {0, 1}


def test_a_long_table_says_how_many_rows_it_leaves_out(tmp_path: Path) -> None:
    """People see the first 200 and are told of the others; with --all and as CSV there are all."""
    Ledger(tmp_path / "runs").append(plain(0))
    sql = "SELECT range AS n FROM range(1234)"
    done = kforge("query", sql, cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 1 + 200
    assert done.stderr.startswith("1,034 more rows, 1,234 in all: --all prints them")
    for form in ("--all", "--csv"):
        done = kforge("query", sql, form, cwd=tmp_path)
        assert (len(done.stdout.splitlines()), done.stderr) == (1 + 1234, "")


def test_csv_holds_lists_too(tmp_path: Path) -> None:
    """All columns of a row can be exported."""
    Ledger(tmp_path / "runs").append(plain(0))
    done = kforge("query", "select * from iterations", "--csv", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("run_id,") or "run_id" in done.stdout.partition("\n")[0]


def test_devices_have_the_fields_of_the_contract(tmp_path: Path) -> None:
    """Names and types that other programs rest on."""
    done = kforge("devices", "--json", cwd=tmp_path)
    device = json.loads(done.stdout.splitlines()[0])
    names = ["name", "vendor", "target", "arch", "machine", "compile", "execute", "time", "why"]
    assert list(device) == [*names, "tool", "version"]
    assert all(isinstance(device[c], bool) for c in ("compile", "execute", "time"))


def test_devices_for_people_give_every_reason_whole(tmp_path: Path) -> None:
    """What is missing and what to do about it stands under the table, however long it is."""
    told = kforge("devices", cwd=tmp_path).stdout
    for line in kforge("devices", "--json", cwd=tmp_path).stdout.splitlines():
        device = json.loads(line)
        listed, _, _ = told.partition(f"\n  {device['why']}\n")
        assert not device["why"] or device["name"] in listed.rpartition("\n")[2]


def test_show_tells_each_step(tmp_path: Path) -> None:
    """Verdict, time and what was changed, of the latest run."""
    ledger = Ledger(tmp_path / "runs")
    ledger.append(plain(0))
    ledger.append(confirmed(1, 1.5))
    done = kforge("show", "relu@cpu", cwd=tmp_path)
    assert done.returncode == 0
    assert "step 0 create a: CORRECT" in done.stdout
    assert "step 1 confirm a: FASTER  1.50x" in done.stdout
    assert "time at full: 100.0 us, eager 150.0 us" in done.stdout


def test_doctor_without_a_compiler_fails_and_says_what_to_do(tmp_path: Path) -> None:
    """PASS and FAIL lines, exit 1 when one fails; a key's value is never shown."""
    env = {"PATH": str(KFORGE.parent), "OPENAI_API_KEY": "sk-secret"}
    done = kforge("doctor", cwd=tmp_path, env=env)
    lines = {line[6:].split("  ")[0]: line for line in done.stdout.splitlines()}
    assert done.returncode == 1
    assert lines["compiler cpu"].startswith("FAIL")
    assert "install" in lines["compiler cpu"]
    assert lines["python"].startswith("PASS")
    assert "OPENAI_API_KEY" in done.stdout
    assert "sk-secret" not in done.stdout + done.stderr


def test_doctor_sees_a_dead_server(tmp_path: Path) -> None:
    """PREFECT_API_URL that leads nowhere is a fault, for people and for machines."""
    done = kforge(
        "doctor", "--json", cwd=tmp_path, env={"PREFECT_API_URL": "http://127.0.0.1:9/api"}
    )
    checks = {check["name"]: check for check in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 1
    assert checks["prefect-server"]["ok"] is False


def test_stopping_what_does_not_run_is_no_error(tmp_path: Path) -> None:
    """Nothing to do is done."""
    done = kforge("server", "stop", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "no server runs\n")
