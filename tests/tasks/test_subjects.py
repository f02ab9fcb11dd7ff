"""Candidate files as strangers hand them in, and the lines that pair them with operators."""

import json
from pathlib import Path

import pytest

from data.errors import MisuseError
from tasks.subjects import LARGEST, Subject, subjects

OPERATOR = "class Model: ...\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"
SOURCE = "class ModelNew:\n    size = 'é'\n"


def read(tmp_path: Path, data: bytes) -> Subject:
    operator, kernel = tmp_path / "relu.py", tmp_path / "kernel.py"
    operator.write_text(OPERATOR)
    kernel.write_bytes(data)
    (subject,) = subjects((str(kernel),), str(operator), None)
    return subject


@pytest.mark.parametrize(
    "data",
    [
        SOURCE.encode(),
        b"\xef\xbb\xbf" + SOURCE.encode(),
        SOURCE.replace("\n", "\r\n").encode(),
        b"# -*- coding: latin-1 -*-\n" + SOURCE.encode("latin-1"),
    ],
    ids=["plain", "byte order mark", "carriage returns", "coding cookie"],
)
def test_python_is_read_as_python_reads_it(tmp_path: Path, data: bytes) -> None:
    """Marks, line ends and other encodings do not make a kernel wrong."""
    subject = read(tmp_path, data)
    assert subject.fault == ""
    assert subject.source.endswith(SOURCE)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x7fELF\x02\x01\x01\0\0", "binary: byte 7 is NUL"),
        (b"\xff not text", "not text"),
        (b"# coding: no-such-code\n", "not text"),
        (b"x = 1\n" * (LARGEST // 6 + 1), "larger than 1 MiB"),
    ],
    ids=["binary", "not UTF-8", "unknown coding", "large"],
)
def test_what_cannot_be_python_says_why(tmp_path: Path, data: bytes, words: str) -> None:
    """One sentence, and no source that would be stored or sent."""
    subject = read(tmp_path, data)
    assert words in subject.fault
    assert subject.source == ""


def test_an_endless_file_is_read_to_its_limit(tmp_path: Path) -> None:
    """A device or a pipe ends at the same size as a file."""
    (tmp_path / "relu.py").write_text(OPERATOR)
    (subject,) = subjects(("/dev/zero",), str(tmp_path / "relu.py"), None)
    assert "larger than" in subject.fault


@pytest.mark.parametrize("name", ["missing.py", "folder", "nul\0.py"])
def test_what_cannot_be_read_is_misuse(tmp_path: Path, name: str) -> None:
    """Nothing was handed in that could have a verdict."""
    (tmp_path / "relu.py").write_text(OPERATOR)
    (tmp_path / "folder").mkdir()
    with pytest.raises(MisuseError, match="cannot be read"):
        subjects((str(tmp_path / name),), str(tmp_path / "relu.py"), None)


def test_pairs_name_their_operators(tmp_path: Path) -> None:
    """A line holds a candidate and what it is judged against; the path stays as it was given."""
    operator, kernel = tmp_path / "relu.py", tmp_path / "kernel.py"
    operator.write_text(OPERATOR)
    kernel.write_text(SOURCE)
    lines = tmp_path / "pairs.jsonl"
    lines.write_text(json.dumps({"candidate": str(kernel), "operator": str(operator)}) + "\n\n")
    (subject,) = subjects((), None, lines)
    assert subject.candidate == str(kernel)
    assert subject.operator.name == "relu"


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"candidate": "a.py"}', '{"candidate": 1, "operator": "b"}']
)
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    """Nothing is judged when one line cannot be read."""
    path = tmp_path / "pairs.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(MisuseError, match=r"pairs\.jsonl:2"):
        subjects((), None, path)
