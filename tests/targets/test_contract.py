"""What every target must do, whatever its vendor."""

import ast
import json
from contextlib import suppress
from pathlib import Path

import pytest

import targets
from data.errors import MachineError
from data.metrics import METRICS
from data.records import Brief, Device
from targets import TARGETS, diagnostics
from targets.base import Target

CASES = Path(__file__).parent / "cases"
ALL = pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))


def test_registry_is_keyed_by_the_targets_own_names() -> None:
    """A device's `target` finds the target of that name."""
    assert all(name == target.name for name, target in TARGETS.items())


def test_a_new_target_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put beside the others it is found by what it calls `TARGET`."""
    text = "from targets.wgsl import WgslTarget\n\nTARGET = WgslTarget(name='nova')\n"
    (tmp_path / "nova.py").write_text(text)
    monkeypatch.setattr(targets, "__path__", [*targets.__path__, str(tmp_path)])
    assert list(targets.found()) == [*TARGETS, "nova"]


@ALL
def test_empty_and_garbage_output_is_no_fault(target: Target) -> None:
    """Parsers return nothing for text that holds nothing."""
    for text in ("", "\n", "x" * 10_000, "\x00\xff: :::\n   |\n", "error:", ":1:1: error: "):
        assert isinstance(target.parse_diagnostics(text), tuple)
        assert isinstance(target.parse_report(text).remarks, tuple)
        assert isinstance(diagnostics.readable(text), str)
    assert target.parse_diagnostics("") == ()


@ALL
def test_unreadable_profile_is_one_clear_line(target: Target) -> None:
    """A profiler's output that holds nothing ends in the world's fault, never in a crash."""
    for text in ("", "\n", "x" * 1000, '"ID","Kernel Name"\n', "{", "==ERROR== no\n", "\x00;\n"):
        with pytest.raises(MachineError) as caught:
            target.parse_profile(text)
        assert "\n" not in str(caught.value)


@ALL
def test_metrics_are_words_of_the_vocabulary(target: Target) -> None:
    """What the recorded outputs of this target give is named and measured as everywhere."""
    for path in sorted((CASES / target.name).glob("*.json")):
        text = json.loads(path.read_text())["output"]
        metrics = target.parse_report(text).metrics
        with suppress(MachineError):
            metrics += target.parse_profile(text).metrics
        for metric in metrics:
            assert metric.unit == METRICS[metric.name].unit
            assert metric.source


@ALL
def test_cut_off_output_is_no_fault(target: Target) -> None:
    """A recorded output that ends anywhere is read as far as it goes, or refused in one line.

    An analyst is told when a profile lacks its end.
    """
    for path in sorted((CASES / target.name).glob("*.json")):
        text = json.loads(path.read_text())["output"]
        for end in range(0, len(text), max(len(text) // 40, 1)):
            target.parse_diagnostics(text[:end])
            target.parse_report(text[:end])
            diagnostics.readable(text[:end])
            with suppress(MachineError):
                remarks = target.parse_profile(text[:end]).remarks
                assert "\n" in text[end - 1 : end + 1] or any("cut off" in r for r in remarks)


@ALL
def test_command_names_source_output_and_compiler(target: Target) -> None:
    """The command compiles what it was given, with the compiler that it was given."""
    for language in (word for half in target.halves for word in half.languages):
        for tool in target.tools:
            command = target.compile_command(
                Path("some.src"), Path("some.out"), language=language, compiler=tool, arch="any"
            )
            assert command[0] == tool
            assert {"some.src", "some.out"} <= set(command)


@ALL
def test_nothing_found_means_no_capability_and_a_reason(target: Target) -> None:
    """A machine without the vendor's tools can do nothing, and it is said why."""
    without = target.capabilities(frozenset())
    assert (without.compile, without.execute, without.time) == (False, False, False)
    assert without.why


@ALL
def test_brief_holds_an_operator_and_its_kernel(target: Target) -> None:
    """The example is a Model and a ModelNew, both valid Python; the guide is not empty."""
    device = Device(name="any", target=target.name, vendor=target.vendor, arch="any")
    assert target.brief(device).language == target.languages[0]
    for language in target.languages:
        brief = target.brief(device, language)
        assert brief.language == language
        _holds_both_halves(brief)


def _holds_both_halves(brief: Brief) -> None:
    assert len(brief.guide) > 500
    for source, name in ((brief.example_operator, "Model"), (brief.example_kernel, "ModelNew")):
        classes = [n.name for n in ast.parse(source).body if isinstance(n, ast.ClassDef)]
        assert name in classes
