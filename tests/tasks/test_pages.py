"""What the Prefect UI is given: keys that it takes, pages that it can hold."""

import re
from dataclasses import replace

from data.records import BuildResult, Candidate
from data.verdict import Verdict
from tasks import pages
from tests.data.samples import confirmed, plain


def test_keys_are_what_prefect_takes() -> None:
    """Lower-case letters, digits and dashes, whatever the operator is called."""
    for name in ("Layer_Norm@cpu", "a/b@x", "é@cpu", "@@"):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", pages.slug(name))


def test_the_confirmed_winner_is_best_not_the_luckiest() -> None:
    """The confirming run is the number that is reported."""
    lucky = plain(0, speedup=9.0, baseline="eager")
    sure = confirmed(1, 1.5)
    assert pages.best([lucky, sure]) == sure
    assert pages.best([lucky]) == lucky
    assert pages.best([plain(0, verdict="WRONG")]) is None


def test_a_huge_kernel_is_cut_below_the_limit() -> None:
    """An artifact's event is refused at 1.5 MB."""
    source = "x = 1  # \ud800\n" * 200_000
    page = pages.best_page(
        confirmed(
            1,
            1.5,
            candidate=Candidate(source=source, language="cpp", agent_kind="o", agent_name="t"),
        )
    )
    assert len(page.encode()) < 500_000
    assert "characters cut" in page


def test_a_fence_in_the_source_does_not_end_the_page() -> None:
    """A kernel that holds back-ticks stays inside its block."""
    made = Candidate(source="s = '''```'''", language="cpp", agent_kind="o", agent_name="t")
    page = pages.best_page(replace(confirmed(1, 1.5), candidate=made))
    assert "````python" in page


def test_progress_ends_only_with_the_pair() -> None:
    """More steps than planned stay below 100 per cent."""
    history = [plain(i) for i in range(20)]
    assert pages.progress(history[:1], 8) < pages.progress(history[:4], 8)
    assert pages.progress(history, 8) < 100


def test_the_best_kernels_page_names_what_it_was_measured_against() -> None:
    """A speed-up without baseline, sizes and contract is no number."""
    page = pages.best_page(confirmed(3, 1.5))
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert "| speed-up | 1.50x [1.47, 1.53], confirmed |" in rows
    assert "| baseline | eager |" in rows
    assert any(row.startswith("| full | 100.0 us | 150.0 us | 1.50x") for row in rows)


def test_a_failed_step_says_what_the_compiler_said() -> None:
    """The log's end is in the run's log, whatever machine it was compiled on."""
    log = "head\n" + "x" * 10_000 + "\nk.cpp:3: error: no such thing"
    build = BuildResult(ok=False, route="launcher", log=log, seconds=1.25)
    said = pages.step_log(plain(0, verdict=Verdict.BUILD_FAILED, reason="k.cpp:3", build=build))
    assert said.startswith("BUILD_FAILED; k.cpp:3; built in 1.2 s\n")
    assert said.endswith("error: no such thing")
    assert len(said) < 5000
    assert "\n" not in pages.step_log(confirmed(3, 1.5))
