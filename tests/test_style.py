"""STYLE.md where a machine can check it: sizes, directions, and who may do what."""

import ast
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("flows", "tasks", "agents", "targets", "data")
MATERIAL = ("data/operators/", "targets/examples/")
"""Sources that are data: operators and the examples shown to a model."""
SHIPPED = (
    "targets/remote/*.py",
    "targets/*.py",
    "targets/machines/local.py",
    "agents/loop.py",
    "agents/strategy.py",
    "agents/offline/*.py",
    "tasks/remote/*.py",
    "data/records.py",
    "data/verdict.py",
    "data/techniques.py",
    "data/codec.py",
    "data/errors.py",
)
LONGER = {
    "targets/remote/side.py": 325,
    "data/records.py": 690,  # a list of values, in the order in which they arise
    "flows/cli.py": 440,  # one function a command, one parameter an option
    "targets/remote/kforge_launch.py": 460,  # travels alone, beside a candidate
}
ALLOWED = {
    "subprocess": ("targets/machines/", "targets/remote/", "agents/external.py", "flows/server.py"),
    "litellm": ("agents/llm.py",),
    "paramiko": ("targets/machines/",),
    "boto3": ("targets/machines/",),
    "prefect": ("flows/", "tasks/"),
    "duckdb": ("data/",),
    "jinja2": ("agents/", "tasks/export/"),
}
SQL = re.compile(
    r"\s*(SELECT\s.+\sFROM|INSERT\s+INTO|CREATE\s+(OR\s+REPLACE\s+)?(VIEW|TABLE)|COPY\s+\(|WITH\s+\w+\s+AS)",
    re.DOTALL,
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def read(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def found() -> dict[str, ast.Module]:
    files = (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))
    return {name(file): read(file) for file in files if not name(file).startswith(MATERIAL)}


MODULES = found()


def functions(module: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(module) if isinstance(node, Function))


def lines(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def imported(module: ast.Module) -> set[str]:
    """Full names of the modules that are imported, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def texts(module: ast.Module) -> Iterator[str]:
    """Strings that are not docstrings."""
    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    told = {
        id(node.value)
        for scope in ast.walk(module)
        if isinstance(scope, scopes)
        for node in scope.body
        if isinstance(node, ast.Expr)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


@pytest.mark.parametrize("file", MODULES)
def test_functions_are_short_and_take_few_parameters(file: str) -> None:
    """None over 60 lines, none with more than five parameters of one kind by position."""
    for node in functions(MODULES[file]):
        taken = [*node.args.posonlyargs, *node.args.args]
        own = [a for a in taken if a.arg not in {"self", "cls"}]
        assert lines(node) <= 60, f"{file}:{node.lineno} {node.name} has {lines(node)} lines"
        assert len(own) <= 5, f"{file}:{node.lineno} {node.name} takes {len(own)} by position"


def test_the_median_function_is_under_12_lines() -> None:
    """Small functions are the rule, not the exception."""
    sizes = [lines(node) for module in MODULES.values() for node in functions(module)]
    assert statistics.median(sizes) < 12


@pytest.mark.parametrize("file", MODULES)
def test_a_module_is_one_noun(file: str) -> None:
    """Past 300 lines there is a second noun."""
    limit = LONGER.get(file, 320)
    assert len((ROOT / file).read_text(encoding="utf-8").splitlines()) <= limit


@pytest.mark.parametrize("file", MODULES)
def test_names_say_what_a_module_holds(file: str) -> None:
    """No managers, helpers or utilities, neither as a module nor as a class."""
    vague = re.compile(r"manager|helper|utils?$|misc|common$", re.IGNORECASE)
    classes = [n.name for n in ast.walk(MODULES[file]) if isinstance(n, ast.ClassDef)]
    assert not [word for word in (Path(file).stem, *classes) if vague.search(word)]


@pytest.mark.parametrize("library", ALLOWED)
def test_libraries_are_used_in_their_place_only(library: str) -> None:
    """One door to each: models, processes, hosts, the database, the scheduler."""
    users = {
        file
        for file, module in MODULES.items()
        if any(used.split(".")[0] == library for used in imported(module))
    }
    assert not {file for file in users if not file.startswith(ALLOWED[library])}


def test_sql_stays_in_data() -> None:
    """A query is data: neither a statement in code nor a .sql file stands elsewhere."""
    for file, module in MODULES.items():
        if not file.startswith("data/"):
            assert not [text for text in texts(module) if SQL.match(text)], file
    files = [f for package in PACKAGES[:-1] for f in (ROOT / package).rglob("*.sql")]
    assert not files


def reached(files: set[str]) -> set[str]:
    """The files and all modules of ours that they import, at any depth."""
    by_name = {
        f.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): f for f in MODULES
    }
    found, waiting = set(files), list(files)
    while waiting:
        used = {by_name[u] for u in imported(MODULES[waiting.pop()]) if u in by_name}
        waiting += used - found
        found |= used
    return found


def test_what_is_shipped_needs_python_and_torch_only() -> None:
    """A machine gets one archive and has torch: nothing else can be imported there."""
    shipped = {name(file) for pattern in SHIPPED for file in ROOT.glob(pattern)}
    known = {*sys.stdlib_module_names, *PACKAGES, "torch", "kforge_launch"}
    for file in reached(shipped):
        assert {used.split(".")[0] for used in imported(MODULES[file])} <= known, file


def test_flows_hide_no_module() -> None:
    """Prefect puts the folder of a flow on the path: `profile.py` there would break cProfile."""
    stems = {Path(file).stem for file in MODULES if file.startswith("flows/")} - {"__init__"}
    assert not stems & {*sys.stdlib_module_names, *PACKAGES}


def test_flows_define_no_classes() -> None:
    """A flow's file may be loaded twice under two names: a class would then be two."""
    for file, module in MODULES.items():
        if file.startswith("flows/"):
            assert not [n.name for n in ast.walk(module) if isinstance(n, ast.ClassDef)], file


def test_imports_go_one_way() -> None:
    """The contracts of pyproject.toml hold, as import-linter sees them."""
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_the_checks_see_a_fault() -> None:
    """Each reader finds what it is for in a small bad module."""
    bad = ast.parse(
        '"""SELECT a FROM docstring."""\ndef f(a, b, c, d, e, g):\n    import subprocess\n'
        '    from litellm import completion\n    return "SELECT x FROM y"\n'
    )
    (node,) = functions(bad)
    assert lines(node) == 4
    assert len(node.args.args) == 6
    assert {"subprocess", "litellm"} <= imported(bad)
    assert [text for text in texts(bad) if SQL.match(text)] == ["SELECT x FROM y"]
