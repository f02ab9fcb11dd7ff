"""Reading operators: files in KernelBench form, whole suites, and our own in `data/operators/`.

Nothing here imports or executes an operator: sources are parsed, metadata is read as literals.
"""

import json
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from data import form
from data.errors import OperatorError
from data.records import Operator

FOLDER = Path(__file__).parent / "operators"
_LEVEL = re.compile(r"level_?(\d+)", re.IGNORECASE)


def read_operator(path: Path, *, suite: str = "kforge") -> Operator:
    """The operator in a Python file; raises OperatorError when it is none.

    A file in a folder such as `level1` has that level, and its name starts with it.
    """
    operator = _from_file(path, suite)
    fault = form.fault(operator.source)
    if fault:
        raise OperatorError(f"{path} is not an operator: {fault}")
    return operator


def built_in() -> tuple[Operator, ...]:
    """The operators of `data/operators/`, by name."""
    return tuple(read_operator(path) for path in sorted(FOLDER.glob("*.py")))


def read_suite(path: Path) -> tuple[Operator, ...]:
    """The operators of a KernelBench checkout, a level or other folder, a Parquet or JSONL file.

    In level and number order, with unique names. A member that only resembles an operator (it does
    not parse, or lacks a part) is kept: its pair ends as not admitted, with the reason on record.
    Raises OperatorError when nothing in it is an operator.
    """
    if path.is_dir():
        found = list(_in_folder(path))
    elif path.is_file():
        found = [_from_row(row, path) for row in _rows(path)]
    else:
        raise OperatorError(
            f"suite {path} does not exist; expected a folder, a .parquet or a .jsonl file"
        )
    if all(form.fault(o.source) for o in found):
        raise OperatorError(_none_in(path, found))
    return tuple(_unique(sorted(found, key=_order)))


def find(names: Sequence[str], suite: Path | None = None) -> tuple[Operator, ...]:
    """The named operators of the suite, or of ours, or of .py files; without names all of them.

    A suite's operator is also known by its name without the level. Raises OperatorError for an
    unknown name, with the closest one.
    """
    files = {name for name in names if name.endswith(".py") or "/" in name}
    if names and len(files) == len(set(names)):
        known: tuple[Operator, ...] = ()
    else:
        known = read_suite(suite) if suite else built_in()
    if not names:
        return known
    chosen = [
        read_operator(Path(name), suite="file") if name in files else _pick(name, known, suite)
        for name in dict.fromkeys(names)
    ]
    return tuple(_unique(chosen))


def literals(operator: Operator) -> dict[str, object]:
    """The declared metadata among FAMILY, OUTPUT, SHAPES and DOMAINS; empty for a plain file.

    Raises OperatorError when the source does not parse or a value is no literal.
    """
    return form.literals(operator.source)


def _from_file(path: Path, suite: str) -> Operator:
    try:
        with tokenize.open(path) as file:
            source = file.read()
    except FileNotFoundError:
        raise OperatorError(
            f"operator file {path} does not exist; give a path to a .py file or an operator's name"
        ) from None
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise OperatorError(f"{path} is not an operator: cannot be read ({error})") from None
    level = _LEVEL.fullmatch(path.absolute().parent.name)
    return _operator(path.stem, source, suite, int(level[1]) if level else None)


def _operator(stem: str, source: str, suite: str, level: int | None) -> Operator:
    """An operator whose name can stand in a path, a query and (lowered) a slug."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", stem).strip("_") or "operator"
    name = plain if level is None else f"level{level}_{plain}"
    return Operator(name=name, source=source, suite=suite, family=_family(source), level=level)


def _family(source: str) -> str | None:
    try:
        family = form.literals(source).get("FAMILY")
    except OperatorError:
        return None
    return family if isinstance(family, str) else None


def _in_folder(path: Path) -> Iterator[Operator]:
    """Whatever looks like an operator in the level folders of a checkout, else in the folder."""
    for root in (path / "KernelBench", path):
        levels = [f for f in root.glob("level*") if f.is_dir() and _LEVEL.fullmatch(f.name)]
        if levels:
            break
    else:
        levels = [path]
    suite = _suite_name(path)
    for file in (file for folder in levels for file in folder.glob("*.py")):
        operator = _from_file(file, suite)
        if form.resembles(operator.source):
            yield operator


def _suite_name(path: Path) -> str:
    """The checkout's name, also when one of its level folders is given."""
    folder = path.absolute()
    return folder.parent.name if _LEVEL.fullmatch(folder.name) else folder.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of KernelBench's data set."""

    code: str
    name: str
    level: int | None
    problem_id: int | None


def _from_row(row: Row, path: Path) -> Operator:
    number = f"{row.problem_id}_"
    known = row.problem_id is None or row.name.startswith(number)
    return _operator(row.name if known else number + row.name, row.code, path.stem, row.level)


def _rows(path: Path) -> list[Row]:
    if path.suffix == ".parquet":
        raw: Iterable[tuple[str, object]] = _parquet(path)
    elif path.suffix in (".jsonl", ".ndjson"):
        raw = _json_lines(path)
    else:
        raise OperatorError(f"suite {path}: expected a folder, a .parquet or a .jsonl file")
    return [_row(where, value) for where, value in raw]


def _row(where: str, value: object) -> Row:
    cells = value if isinstance(value, dict) else {}
    for column in ("code", "name"):
        if not isinstance(cells.get(column), str):
            raise OperatorError(
                f"{where}: no text in column {column!r}; expected code, level, name, problem_id"
            )
    numbers = [_number(where, column, cells.get(column)) for column in ("level", "problem_id")]
    return Row(code=cells["code"], name=cells["name"], level=numbers[0], problem_id=numbers[1])


def _number(where: str, column: str, value: object) -> int | None:
    if value is None:
        return None
    digits = re.fullmatch(r"(?:level_?)?(\d+)", str(value), re.IGNORECASE)
    if not digits:
        raise OperatorError(f"{where}: {column} is {value!r}, expected a whole number")
    return int(digits[1])


def _json_lines(path: Path) -> Iterator[tuple[str, object]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"suite {path} cannot be read: {error}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield f"{path}:{number}", json.loads(line)
            except json.JSONDecodeError as error:
                raise OperatorError(f"{path}:{number} is not JSON: {error}") from None


def _parquet(path: Path) -> list[tuple[str, object]]:
    import pyarrow as pa  # noqa: PLC0415  (0.2 s that other suites need not pay)
    from pyarrow import parquet  # noqa: PLC0415

    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise OperatorError(f"suite {path} is not a readable Parquet file: {error}") from None
    return [(f"{path} row {i}", row) for i, row in enumerate(table.to_pylist(), 1)]


def _none_in(path: Path, found: Sequence[Operator]) -> str:
    expected = "Python files with" if path.is_dir() else "rows whose code has"
    first = f"; {found[0].name}: {form.fault(found[0].source)}" if found else ""
    return (
        f"no operators in {path}: expected {expected} class Model, get_inputs and get_init_inputs"
        f"{first}"
    )


def _order(operator: Operator) -> tuple[int, int, str]:
    stem = re.sub(r"^level\d+_", "", operator.name)
    number = re.match(r"\d+", stem)
    return operator.level or 0, int(number[0]) if number else 0, operator.name


def _unique(operators: Iterable[Operator]) -> Iterator[Operator]:
    """Each operator once; the later of two that share a name gets six digits of its hash."""
    seen: dict[str, str] = {}
    for operator in operators:
        if seen.get(operator.name.lower()) == operator.hash:
            continue
        renamed = operator
        if operator.name.lower() in seen:
            renamed = replace(operator, name=f"{operator.name}_{operator.hash[:6]}")
        seen[renamed.name.lower()] = operator.hash
        yield renamed


def _pick(name: str, known: Sequence[Operator], suite: Path | None) -> Operator:
    wanted = name.lower()
    for operator in known:
        if wanted in (operator.name.lower(), re.sub(r"^level\d+_", "", operator.name.lower())):
            return operator
    raise OperatorError(_unknown(name, known, suite or FOLDER))


def _unknown(name: str, known: Sequence[Operator], source: Path) -> str:
    names = [operator.name for operator in known]
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    listing = f"`ls {source}` shows" if source.is_dir() else f"{', '.join(names[:12])} are among"
    return (
        f"unknown operator {name!r}; {hint}{listing} the {len(known)} that are known; "
        "a path to a .py file is taken too"
    )
