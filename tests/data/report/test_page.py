"""The page as text: what models wrote is data, numbers are the views' own, size is bounded."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data import simulated
from data.answers import plain as plain_rows
from data.errors import LedgerError, MisuseError
from data.records import Advice, Bottleneck, Candidate, Device, Iteration, Mode, Move, Operator
from data.report import stories
from data.report.packing import unpacked
from data.report.page import write
from data.store import Ledger
from data.verdict import Outcome, Verdict
from data.views import connect, question
from tests.data.samples import CPU, RELU, confirmed, emulated, plain, rich

HOSTILE = "</script><script>alert(1)</script><!-- \u202e\u2066 \" ' & <img src=x onerror=alert(1)>"


def hostile(step: int = 0) -> Iteration:
    """A step in which everything that a model or a person names is an attack on the page."""
    advice = Advice(
        bottleneck=Bottleneck.MEMORY, evidence=(), change=HOSTILE, technique=HOSTILE, model=HOSTILE
    )
    made = Candidate(source=HOSTILE, language="cpp", agent_kind="llm", agent_name=HOSTILE)
    return confirmed(
        step,
        2.0,
        run_id=HOSTILE,
        epoch=HOSTILE,
        operator=Operator(name=HOSTILE, source="x", family=HOSTILE),
        device=Device(name=HOSTILE, target="cpu", vendor=HOSTILE, arch="a"),
        reason=HOSTILE,
        baseline=HOSTILE,
        candidate=made,
        advice=advice,
        techniques_added=(HOSTILE,),
        environment={HOSTILE: HOSTILE},
    )


def reported(folder: Path, *iterations: Iteration, run: str | None = None) -> str:
    """The page of a ledger that holds these steps."""
    for iteration in iterations:
        Ledger(folder / "runs").append(iteration)
    return write(folder / "runs", folder / "r.html", run).path.read_text()


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def stories_of(page: str) -> list[Any]:
    data = data_of(page)
    found = re.search(r'<script type="text/plain" id="chunks">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    chunks = found[1].split("\n")
    assert [len(c) for c in chunks[: len(data["stories"])]] == data["stories"]
    return [unpacked(chunk) for chunk in chunks[: len(data["stories"])]]


def rows_of(table: Any) -> list[dict[str, Any]]:
    """A packed table as rows."""
    columns = {
        name: [c["values"][code] for code in c["codes"]] if isinstance(c, dict) else c
        for name, c in table["columns"].items()
    }
    return [{name: values[n] for name, values in columns.items()} for n in range(table["rows"])]


def test_hostile_text_is_data_and_never_markup(tmp_path: Path) -> None:
    """No element, comment or reading direction comes from the ledger."""
    page = reported(tmp_path, hostile())
    assert page.count("<script") == page.count("</script>") == 3
    assert "<img" not in page
    assert "alert(1)>" not in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00]", page)
    (story,) = stories_of(page)
    shown = HOSTILE.replace("\u202e", "⟨U+202E⟩").replace("\u2066", "⟨U+2066⟩")
    assert story["steps"][0]["advice"]["change"] == shown
    assert story["sources"] == [shown]
    assert data_of(page)["about"]["runs"] == 1


def test_surrogates_and_nul_in_a_source_are_shown(tmp_path: Path) -> None:
    """A model's reply may hold what no text can."""
    (story,) = stories_of(reported(tmp_path, rich()))
    assert "⟨U+0000⟩" in story["sources"][0]


def test_the_policy_allows_this_script_and_this_style_only(tmp_path: Path) -> None:
    """Hashes of what stands in the page; no request to anybody."""
    page = reported(tmp_path, plain())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    program = page.rsplit("<script>", 1)[1].split("</script>")[0]
    style = page.split("<style>")[1].split("</style>")[0]
    for text in (program, style):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy[1]
    assert policy[1].startswith("default-src 'none'")
    assert not re.search(r"unsafe|https?:|\*", policy[1])
    addresses = set(re.findall(r"https?://[^\"'\s)]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}, "the name of SVG is no address"


def test_the_script_makes_no_markup_of_text(tmp_path: Path) -> None:
    """Text goes in as text: none of the ways to parse a string is used."""
    page = reported(tmp_path, plain())
    program = page.rsplit("<script>", 1)[1]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(|DOMParser|srcdoc|fetch\(",
        program,
    )


def test_numbers_are_those_of_the_views(tmp_path: Path) -> None:
    """Each table of the page is the question's own answer, to six digits."""
    steps = [confirmed(n, 1 + n / 7, operator=replace(RELU, source=f"o{n}")) for n in range(9)]
    page = reported(tmp_path, *steps, plain(9, operator=replace(RELU, source="x")))
    tables = data_of(page)["tables"]
    views = connect(tmp_path / "runs")
    for name, table in tables.items():
        asked = plain_rows(views.sql(question(name)).to_arrow_table())
        for found, row in zip(rows_of(table), asked, strict=True):
            numbers = {k: v for k, v in row.items() if isinstance(v, float)}
            assert {k: found[k] for k in numbers} == pytest.approx(numbers, rel=1e-5), name


def test_a_pair_shows_confirmed_speed_only(tmp_path: Path) -> None:
    """An unconfirmed best-of is no figure; failures and outcomes keep their names."""
    page = reported(
        tmp_path,
        plain(0, speedup=9.0, baseline="eager", verdict=Verdict.FASTER),
        plain(0, operator=replace(RELU, source="b"), verdict=Verdict.NOT_AUTHORED),
        plain(0, operator=replace(RELU, source="c"), verdict=Outcome.NOT_COVERED, candidate=None),
        confirmed(1, 1.5, operator=replace(RELU, source="d")),
    )
    found = {r["verdict"]: r["speedup"] for r in rows_of(data_of(page)["pairs"]) if r["confirmed"]}
    assert found == {"FASTER": 1.5}
    others = {
        r["verdict"]: r["speedup"] for r in rows_of(data_of(page)["pairs"]) if not r["confirmed"]
    }
    assert others == {"FASTER": None, "NOT_AUTHORED": None, "NOT_COVERED": None}


def test_emulated_devices_have_no_times(tmp_path: Path) -> None:
    """Not even where an older row claims one."""
    page = reported(tmp_path, emulated(confirmed(0, 3.0), "m4"))
    data = data_of(page)
    assert [r["execution"] for r in rows_of(data["tables"]["coverage"])] == ["emulated"]
    assert data["tables"]["speedups"]["rows"] == data["tables"]["best"]["rows"] == 0


def test_a_run_alone_is_answered_over_its_rows(tmp_path: Path) -> None:
    """Another run's faster kernel is not in it; `last` is the run that ended latest."""
    early = confirmed(0, 5.0, run_id="early", ended_at="2026-01-01T00:00:00+00:00")
    late = confirmed(1, 2.0, run_id="late", ended_at="2026-02-01T00:00:00+00:00")
    page = reported(tmp_path, early, late, run="last")
    assert data_of(page)["about"]["run_id"] == "late"
    assert [r["speedup"] for r in rows_of(data_of(page)["tables"]["best"])] == [2.0]
    assert data_of(page)["pairs"]["rows"] == 1
    assert [r["speedup"] for r in rows_of(data_of(reported(tmp_path))["tables"]["best"])] == [5.0]


def test_rows_of_another_judge_count_apart(tmp_path: Path) -> None:
    """Imported history is told, and is in no figure."""
    other = replace(CPU, name="l40s", execution="imported")
    data = data_of(reported(tmp_path, plain(0), plain(1, device=other)))
    assert (data["about"]["steps"], data["about"]["imported"]) == (1, 1)
    assert data["pairs"]["rows"] == 2
    assert [r["device"] for r in rows_of(data["tables"]["coverage"])] == ["cpu"]


def test_made_up_rows_are_called_so(tmp_path: Path) -> None:
    """A ledger of simulated devices can not be taken for measurements."""
    simulated.mark(tmp_path / "runs")
    device = replace(CPU, execution="simulated")
    assert data_of(reported(tmp_path, plain(0, device=device)))["about"]["made_up"]


def test_an_unknown_run_and_no_ledger_are_misuse(tmp_path: Path) -> None:
    """One line that names what is known; nothing is written."""
    with pytest.raises(MisuseError, match="no ledger"):
        write(tmp_path, tmp_path / "r.html")
    with pytest.raises(MisuseError, match=r"no run 'x' in .*; known, latest first: run"):
        reported(tmp_path, plain(), run="x")
    assert not (tmp_path / "r.html").exists()


def test_a_place_that_cannot_be_written_is_the_worlds_fault(tmp_path: Path) -> None:
    """One line, and no half file."""
    Ledger(tmp_path / "runs").append(plain())
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="choose another file"):
        write(tmp_path / "runs", tmp_path / "file" / "r.html")


def test_an_empty_ledger_has_a_page(tmp_path: Path) -> None:
    """It says that nothing is on record."""
    (tmp_path / "runs" / "iterations").mkdir(parents=True)
    assert data_of(reported(tmp_path))["about"]["steps"] == 0


def test_what_is_left_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Champions are told first; the page and the caller learn of the rest."""
    monkeypatch.setattr(stories, "STEPS", 3)
    for n in range(3):
        Ledger(tmp_path / "runs").append(plain(n, operator=replace(RELU, source=f"o{n}")))
    for n in range(2):
        Ledger(tmp_path / "runs").append(
            plain(
                n,
                operator=replace(RELU, source="best"),
                move=Move(mode=Mode.CREATE, step=n, lineage="a"),
            )
        )
    Ledger(tmp_path / "runs").append(confirmed(2, 2.0, operator=replace(RELU, source="best")))
    written = write(tmp_path / "runs", tmp_path / "r.html")
    data = data_of(written.path.read_text())
    assert len(data["stories"]) == 1
    assert rows_of(data["pairs"])[0]["champion"]
    assert written.left_out == tuple(data["left_out"])
    assert "3 of 4 pairs" in written.left_out[0]


def test_the_diff_is_made_of_sources_that_are_there_once(tmp_path: Path) -> None:
    """Steps share a source by index; a confirming step has its parent's."""
    made = Candidate(source="# one", language="cpp", agent_kind="offline", agent_name="map")
    page = reported(tmp_path, plain(0, candidate=made), confirmed(1, 2.0, candidate=made))
    (story,) = stories_of(page)
    assert story["sources"] == ["# one"]
    assert [step["source"] for step in story["steps"]] == [0, 0]
    assert [len(step["times"]) for step in story["steps"]] == [0, 1]
