"""Reading operators and suites: what is found, under which name, and what a person is told."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from data.errors import MisuseError, OperatorError
from data.operator import built_in, find, literals, read_operator, read_suite

SUITE = Path(__file__).parent.parent / "suites"
NAMES = [
    "level1_1_Square_matrix_multiplication",
    "level1_19_ReLU",
    "level1_23_Softmax",
    "level1_40_LayerNorm",
    "level1_58_conv_transposed_3D",
    "level1_100_HugeHingeLoss",
]
PLAIN = (
    "from torch import nn\n\n\nclass Model(nn.Module):\n    pass\n\n\n"
    "def get_inputs():\n    return []\n\n\ndef get_init_inputs():\n    return []\n"
)


def rows() -> list[dict[str, object]]:
    """The suite as KernelBench's data set spells it."""
    files = sorted((SUITE / "level1").glob("*.py"))
    return [
        {
            "code": file.read_text(encoding="utf-8"),
            "level": 1,
            "name": file.stem,
            "problem_id": int(file.stem.split("_")[0]),
        }
        for file in files
    ]


def write_jsonl(path: Path, content: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    return path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def message(path: Path) -> str:
    with pytest.raises(OperatorError) as caught:
        read_operator(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_level_folder_and_checkout_give_the_same_operators(tmp_path: Path) -> None:
    """A level folder, its parent and a whole checkout are read without a change, in order."""
    checkout = tmp_path / "KernelBench"
    for file in (SUITE / "level1").glob("*.py"):
        write(checkout / "KernelBench" / "level1" / file.name, file.read_text(encoding="utf-8"))
    write(checkout / "src" / "eval.py", PLAIN)
    for path in (SUITE / "level1", SUITE, checkout, checkout / "KernelBench"):
        found = read_suite(path)
        assert [o.name for o in found] == NAMES
        assert {o.level for o in found} == {1}
    assert {o.suite for o in read_suite(checkout)} == {"KernelBench"}


def test_data_set_gives_the_same_names_and_hashes_as_the_folder(tmp_path: Path) -> None:
    """Whoever ports from the Parquet or JSONL file goes on with what the folder began."""
    parquet.write_table(pa.Table.from_pylist(rows()), tmp_path / "bench.parquet")
    write_jsonl(tmp_path / "bench.jsonl", rows())
    expected = [(o.name, o.hash, o.level) for o in read_suite(SUITE)]
    for file in ("bench.parquet", "bench.jsonl"):
        assert [(o.name, o.hash, o.level) for o in read_suite(tmp_path / file)] == expected


def test_a_row_without_its_number_in_the_name_gets_it(tmp_path: Path) -> None:
    """Names are unique within a level: the number tells two of the same name apart."""
    path = write_jsonl(
        tmp_path / "s.jsonl",
        [
            {"code": PLAIN, "level": 2, "name": "Softmax", "problem_id": 7},
            {"code": PLAIN, "level": 2, "name": "Softmax", "problem_id": 8},
        ],
    )
    assert [o.name for o in read_suite(path)] == ["level2_7_Softmax", "level2_8_Softmax"]


def test_two_sources_never_share_a_name(tmp_path: Path) -> None:
    """Names that differ in case or punctuation only would collide in a slug."""
    path = write_jsonl(
        tmp_path / "s.jsonl",
        [
            {"code": PLAIN, "name": "Soft-max"},
            {"code": PLAIN + "x = 1\n", "name": "soft_max"},
            {"code": PLAIN, "name": "Soft-max"},
        ],
    )
    found = read_suite(path)
    assert len(found) == 2
    assert len({o.name.lower() for o in found}) == 2


def test_plain_folder_of_operators_is_a_suite(tmp_path: Path) -> None:
    """Own operators need no level folder; modules beside them are no operators."""
    write(tmp_path / "mine.py", PLAIN)
    write(tmp_path / "common.py", "import math\n")
    write(tmp_path / "__init__.py", "")
    assert [(o.name, o.level) for o in read_suite(tmp_path)] == [("mine", None)]


def test_broken_member_does_not_stop_a_suite(tmp_path: Path) -> None:
    """One file that does not parse is kept, to be refused on record, and the rest is ported."""
    write(tmp_path / "good.py", PLAIN)
    write(tmp_path / "bad.py", "class Model(:\n")
    assert [o.name for o in read_suite(tmp_path)] == ["bad", "good"]


def test_folder_without_operators_says_what_was_expected(tmp_path: Path) -> None:
    """A folder of other files is misuse, told in one line."""
    write(tmp_path / "notes.py", "x = 1\n")
    with pytest.raises(
        OperatorError,
        match=r"no operators in .*: expected Python files with class Model, get_inputs and",
    ):
        read_suite(tmp_path)


def test_missing_suite_is_told(tmp_path: Path) -> None:
    """A path that is not there is not an empty suite."""
    with pytest.raises(OperatorError, match="does not exist"):
        read_suite(tmp_path / "absent")


def test_unknown_suite_format_is_told(tmp_path: Path) -> None:
    """The formats that are read stand in the message."""
    with pytest.raises(OperatorError, match=r"\.parquet or a \.jsonl"):
        read_suite(write(tmp_path / "suite.csv", "code,name\n"))


def test_truncated_parquet_is_one_clear_line(tmp_path: Path) -> None:
    """A cut-off download is named as such."""
    whole = tmp_path / "whole.parquet"
    parquet.write_table(pa.Table.from_pylist(rows()), whole)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(
        OperatorError, match=r"cut\.parquet is not a readable Parquet file"
    ) as caught:
        read_suite(cut)
    assert "\n" not in str(caught.value)


def test_missing_column_is_named(tmp_path: Path) -> None:
    """A data set of another kind is refused with the column that it lacks."""
    parquet.write_table(pa.Table.from_pylist([{"name": "x", "level": 1}]), tmp_path / "s.parquet")
    with pytest.raises(OperatorError, match="no text in column 'code'"):
        read_suite(tmp_path / "s.parquet")
    path = write_jsonl(tmp_path / "s.jsonl", [{"code": PLAIN, "level": 1}])
    with pytest.raises(OperatorError, match=r"s\.jsonl:1: no text in column 'name'"):
        read_suite(path)


def test_bad_json_line_is_named(tmp_path: Path) -> None:
    """The line number leads to the fault; a level that is no number is told as well."""
    good = json.dumps({"code": PLAIN, "name": "a", "level": 1, "problem_id": 1})
    with pytest.raises(OperatorError, match=r"s\.jsonl:2 is not JSON"):
        read_suite(write(tmp_path / "s.jsonl", good + "\n{oops\n"))
    with pytest.raises(OperatorError, match="level is 'easy'"):
        read_suite(write_jsonl(tmp_path / "s.jsonl", [{"code": "", "name": "a", "level": "easy"}]))
    with pytest.raises(OperatorError, match="no operators in"):
        read_suite(write(tmp_path / "empty.jsonl", "\n"))


@pytest.mark.parametrize("part", ["class Model", "get_inputs()", "get_init_inputs()"])
def test_missing_part_is_named(tmp_path: Path, part: str) -> None:
    """The person learns which of the three parts is missing."""
    name = part.removeprefix("class ").removesuffix("()")
    text = PLAIN.replace(f" {name}(", " other(")
    assert message(write(tmp_path / "op.py", text)).endswith(f"it lacks {part}")


def test_syntax_error_names_the_line(tmp_path: Path) -> None:
    """A file that does not parse is refused with its line."""
    assert "syntax error in line 4" in message(write(tmp_path / "op.py", "\n\n\nclass Model(:\n"))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("SHAPES = {'small': {'n': 3}}", "'full' among them"),
        ("SHAPES = {'full': {'n': size}}", "SHAPES in line 14 is not a literal"),
        ("OUTPUT = 'floats'", "OUTPUT is 'floats'"),
        ("OUTPUT = []", "OUTPUT is []"),
        ("DOMAINS = ['index']", "DOMAINS is ['index']"),
        ("FAMILY = 3", "FAMILY is 3"),
    ],
)
def test_faulty_metadata_is_told(tmp_path: Path, line: str, told: str) -> None:
    """A slip in the metadata must not silently become an operator without metadata."""
    assert told in message(write(tmp_path / "op.py", PLAIN + line + "\n"))


def test_an_operator_is_never_executed(tmp_path: Path) -> None:
    """Reading parses only: an operator may come from anywhere."""
    flag = tmp_path / "ran"
    path = write(tmp_path / "op.py", PLAIN + f"open({str(flag)!r}, 'w')\n")
    read_operator(path)
    read_suite(tmp_path)
    assert not flag.exists()


def test_unreadable_file_is_one_line(tmp_path: Path) -> None:
    """Absent, a folder, binary: each is told, none is a traceback."""
    assert "does not exist" in message(tmp_path / "absent.py")
    assert "cannot be read" in message(tmp_path)
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00\x01")
    assert "cannot be read" in message(tmp_path / "binary.py")
    assert "null bytes" in message(write(tmp_path / "null.py", "x = 1\0"))


def test_find_takes_names_paths_and_nothing() -> None:
    """No name means all; order is that of the request; a name counts once."""
    assert find([]) == built_in()
    assert [o.name for o in find(["softmax", "relu", "softmax"])] == ["softmax", "relu"]
    assert [o.name for o in find(["19_relu", "level1_23_Softmax"], SUITE)] == [
        "level1_19_ReLU",
        "level1_23_Softmax",
    ]
    path = SUITE / "level1" / "19_ReLU.py"
    (alone,) = find([str(path)])
    assert (alone.name, alone.level, alone.suite) == ("level1_19_ReLU", 1, "file")
    assert alone.hash == find(["19_ReLU"], SUITE)[0].hash


def test_unknown_name_suggests_the_closest() -> None:
    """A typing slip is answered with the likely name and the way to list all."""
    with pytest.raises(MisuseError, match=r"'sofmax'; did you mean 'softmax'\? `ls .*operators`"):
        find(["sofmax"])
    with pytest.raises(MisuseError, match="did you mean 'level1_40_LayerNorm'"):
        find(["level1_40_LayrNorm"], SUITE)


def test_literals_hold_what_is_declared_only() -> None:
    """A plain KernelBench file declares nothing."""
    (softmax,) = find(["softmax"])
    assert literals(softmax)["FAMILY"] == softmax.family == "softmax"
    assert set(literals(softmax)) == {"FAMILY", "OUTPUT", "SHAPES"}
    assert literals(find(["23_Softmax"], SUITE)[0]) == {}
