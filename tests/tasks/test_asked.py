"""What a person asks for becomes the same campaign each time, or a clear refusal."""

from dataclasses import replace
from pathlib import Path

import pytest

from data.errors import MisuseError
from tasks.asked import Asked, compose

RELU = "class Model: ...\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    (tmp_path / "relu.py").write_text(RELU)
    return Asked(operators=(str(tmp_path / "relu.py"),), runs=str(tmp_path / "runs"))


def test_the_same_question_is_the_same_run(asked: Asked) -> None:
    """Else a run that was cut could not go on."""
    assert compose(asked).run_id == compose(asked).run_id


@pytest.mark.parametrize(
    "change", [{"epoch": "other"}, {"steps": 5}, {"seed": 1}, {"policy": "half"}]
)
def test_what_changes_the_numbers_changes_the_run(asked: Asked, change: dict[str, object]) -> None:
    """Epoch, limits, seed and contract are part of the identity."""
    other = replace(asked, **change)  # type: ignore[arg-type]  # fields by name
    assert compose(other).run_id != compose(asked).run_id


def test_where_the_ledger_lies_does_not_change_the_run(asked: Asked, tmp_path: Path) -> None:
    """A ledger that was moved still resumes."""
    moved = replace(asked, runs=str(tmp_path / "elsewhere"))
    assert compose(moved).run_id == compose(asked).run_id


def test_start_and_include_are_read(asked: Asked, tmp_path: Path) -> None:
    """The campaign holds the sources: the files may change afterwards."""
    (tmp_path / "inc" / "sub").mkdir(parents=True)
    (tmp_path / "inc" / "sub" / "a.h").write_text("int a;")
    (tmp_path / "inc" / ".hidden").write_text("secret")
    (tmp_path / "k.cu").write_text("kernel")
    more = replace(asked, start=str(tmp_path / "k.cu"), include=str(tmp_path / "inc"))
    settings = compose(more).settings
    assert settings.start == "kernel"
    assert settings.include == {"sub/a.h": "int a;"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"devices": ()}, "--device"),
        ({"devices": ("b2000",)}, "unknown device 'b2000'; known: a100, "),
        ({"agents": "llm"}, "--model"),
        ({"model": "m"}, "--agents llm"),
        ({"steps": 0}, "1 to 200"),
        ({"epoch": "../x"}, "--epoch"),
        ({"policy": "fp4"}, "strict, tf32, half"),
        ({"start": "/dev/null"}, "is empty"),
        ({"include": "/nowhere"}, "not a folder"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    asked: Asked, change: dict[str, object], said: str
) -> None:
    """The message names the option and what was expected."""
    other = replace(asked, **change)  # type: ignore[arg-type]  # fields by name
    with pytest.raises(MisuseError, match=said):
        compose(other)
