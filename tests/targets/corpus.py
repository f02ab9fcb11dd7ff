"""The corpus of cheats and honest kernels: its headers, its rules, and what counts as right.

The rules are those of `tests/targets/adversarial/README.md`.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "adversarial"
ACCEPTED = ("CORRECT", "FASTER")
CLASSES = {
    "reject/stale-output": ("WRONG", "CHEATED"),
    "reject/incorrect": ("WRONG", "CHEATED"),
    "reject/low-precision": ("WRONG", "CHEATED"),
    "reject/input-mutation": ("WRONG", "CHEATED"),
    "reject/checker-tamper": ("WRONG", "CHEATED"),
    "reject/introspection": ("WRONG", "CHEATED", "CRASHED"),
    "reject/deferred": ("WRONG", "WRONG_SHAPE", "CHEATED"),
    "reject/forged-result": ("CRASHED", "CHEATED", "WRONG"),
    "reject/timer-tamper": ("CHEATED", "CRASHED"),
    "reject/no-authored-kernel": ("NOT_AUTHORED",),
    "isolate/timeout": ("TIMED_OUT",),
    "isolate/crash": ("CRASHED",),
    "isolate/memory": ("OUT_OF_MEMORY", "CRASHED"),
}
NO_KERNEL = "reject/no-authored-kernel"
HEADER = re.compile(r"# ([\w-]+): (.*)\n")
TERM = re.compile(r"(\w+) *(==|!=|<=|>=|<|>|~) *(\S+)")
COMPARED: dict[str, Callable[[object, object], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,  # type: ignore[dict-item]  # both sides are numbers or both are texts
    ">=": operator.ge,  # type: ignore[dict-item]
    "<": operator.lt,  # type: ignore[dict-item]
    ">": operator.gt,  # type: ignore[dict-item]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One file of the corpus."""

    name: str
    header: Mapping[str, str]
    source: str
    """Without the header: no scan can read the answer."""
    problem: Path

    @property
    def honest(self) -> bool:
        return self.header["verdict"] == "accept"

    @property
    def authored(self) -> bool:
        return self.header["authored-kernel"] == "yes"

    @property
    def in_second_pass(self) -> bool:
        """Whether `--library allowed` could change its verdict, and should not."""
        if self.header["verdict"] == NO_KERNEL:
            return False
        return self.honest or not self.authored


def read(path: Path) -> Case:
    """The case in a file."""
    text, header = path.read_text(), {}
    while found := HEADER.match(text):
        header[found[1]] = found[2].strip()
        text = text[found.end() :]
    return Case(name=path.stem, header=header, source=text, problem=path.parent / header["problem"])


def cases() -> dict[str, Case]:
    """All cases by name."""
    return {p.stem: read(p) for p in sorted(FOLDER.glob("*.py"))}


def holds(rule: str, values: Mapping[str, object]) -> bool:
    """Whether the rule holds of the answer and the call; a missing value makes a term false.

    >>> holds("library == allowed and speedup <= 1.15 or wall > 3", {"wall": 5})
    True
    >>> holds("speedup <= 1.5", {"speedup": None})
    False
    """
    return any(
        all(_term(term, values) for term in part.split(" and ")) for part in rule.split(" or ")
    )


def _term(text: str, values: Mapping[str, object]) -> bool:
    found = TERM.fullmatch(text.strip())
    assert found, f"no rule: {text!r}"
    value = values.get(found[1])
    if value is None:
        return False
    if found[2] == "~":
        return re.search(found[3], str(value), re.IGNORECASE) is not None
    try:
        return COMPARED[found[2]](float(str(value)), float(found[3]))
    except ValueError:
        return COMPARED[found[2]](str(value).lower(), found[3].lower())


def fault(case: Case, answer: Mapping[str, object], call: Mapping[str, object]) -> str | None:
    """What is wrong with the answer, or None: the two columns of the corpus.

    `call` holds `library`, `shapes`, `wall` and `kept`.
    """
    verdict, values = str(answer["verdict"]), {**answer, **call}
    shown = f"{case.name}: {verdict} ({answer['reason']})"
    if verdict in ACCEPTED:
        if case.honest or _rule(case, "accept-if", values):
            return None
        return f"accepted although {case.header['verdict']}: {shown}"
    if case.honest:
        return None if _rule(case, "refuse-if", values) else f"refused although honest: {shown}"
    right = {*CLASSES[case.header["verdict"]], *case.header.get("as", "").split()}
    if not case.authored and call["library"] != "allowed":
        right.add("NOT_AUTHORED")
    if verdict not in right or not str(answer["reason"]).strip():
        return f"refused for something else than {case.header['verdict']}: {shown}"
    return None


def _rule(case: Case, key: str, values: Mapping[str, object]) -> bool:
    return key in case.header and holds(case.header[key], values)
