"""The parser against answers that known extractors get wrong (LLM.md, section 5)."""

import time
from pathlib import Path

import pytest

from agents.elision import elided
from agents.fences import blocks
from agents.reply import ParseStatus, json_object, parse

GOOD = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""
OLD = GOOD.replace("return x", "return x + 0")
FENCE = "```"


def fenced(code: str, tag: str = "python", fence: str = FENCE) -> str:
    return f"{fence}{tag}\n{code}{fence}\n"


QUOTED = '''import torch
K = r"""
// a `tick`, a {brace}
void f(float* y) { y[0] = 1; }
"""


class ModelNew(torch.nn.Module):
    """Use it so:

    ```
    ModelNew()
    ```
    """
'''
TICKED = GOOD.replace("return x", "return x  # not ``` the end")

TAKEN = {
    "plain": (fenced(GOOD), GOOD),
    "no tag": (fenced(GOOD, ""), GOOD),
    "tag cuda": (fenced(GOOD, "cuda"), GOOD),
    "tag CPP": (fenced(GOOD, "CPP"), GOOD),
    "tag with attributes": (fenced(GOOD, 'python title="kernel.py" {1,2}'), GOOD),
    "tag triton": (fenced(GOOD, "triton"), GOOD),
    "prose around": (f"Sure!\n\n{fenced(GOOD)}\nDone.", GOOD),
    "two blocks, the later better": (fenced("def old(): return 1\n") + fenced(GOOD), GOOD),
    "two blocks, the earlier better": (fenced(GOOD) + fenced("print(1)\nprint(2)\n"), GOOD),
    "code and a bash block": (fenced(GOOD) + "Run:\n" + fenced("python kernel.py\n", "bash"), GOOD),
    "the same block twice": (fenced(GOOD) + fenced(GOOD), GOOD),
    "draft in think tags": (f"<think>\n{fenced(OLD)}</think>\n{fenced(GOOD)}", GOOD),
    "only the closing think tag": (f"{fenced(OLD)}\n</think>\n{fenced(GOOD)}", GOOD),
    "back-ticks inside a comment": (fenced(TICKED), TICKED),
    "fences inside a docstring": (fenced(QUOTED), QUOTED),
    "tilde fence": (fenced(GOOD, fence="~~~"), GOOD),
    "longer fence": (fenced(GOOD, fence="`````"), GOOD),
    "no fence": (GOOD, GOOD),
    "CRLF": (fenced(GOOD).replace("\n", "\r\n"), GOOD),
    "byte-order mark": ("\ufeff" + GOOD, GOOD),
    "byte-order mark in the block": (fenced("\ufeff" + GOOD), GOOD),
    "inside a Markdown block": (fenced(fenced(GOOD), "markdown", "````"), GOOD),
    "a usage block that was cut": (fenced(GOOD) + f"{FENCE}bash\npython k", GOOD),
    "inside a list": ("1. Kernel:\n\n   " + fenced(GOOD).replace("\n", "\n   "), GOOD),
    "unclosed, but whole": (f"{FENCE}python\n{GOOD}", GOOD),
    "legal ellipsis": (
        fenced(GOOD.replace("return x", "return x[..., 0]")),
        GOOD.replace("return x", "return x[..., 0]"),
    ),
    "diff beside the file": (fenced("-class ModelNew: 1\n", "diff") + fenced(GOOD), GOOD),
    "a syntax error is the compiler's to report": (
        fenced(GOOD + "def f(:\n"),
        GOOD + "def f(:\n",
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_the_right_block_is_taken(name: str) -> None:
    """The source is the block that holds the kernel, byte for byte."""
    text, source = TAKEN[name]
    answer = parse(text, "stop")
    assert answer.status is ParseStatus.OK
    assert answer.source.rstrip() == source.rstrip()


HALF = f"{FENCE}python\nclass ModelNew:\n    def forward(self"
REFUSED = {
    "None": (None, "length", ParseStatus.NULL),
    "empty": (" \n", "stop", ParseStatus.EMPTY),
    "filtered": ("Sorry", "content_filter", ParseStatus.REFUSED),
    "refusal": ("I'm sorry, but I can't help with that.", "stop", ParseStatus.REFUSED),
    "truncated": (HALF, "length", ParseStatus.TRUNCATED),
    "truncated, although it says stop": (HALF, "stop", ParseStatus.TRUNCATED),
    "whole by chance, cut by length": (f"{FENCE}python\n{GOOD}", "length", ParseStatus.TRUNCATED),
    "unclosed think": (f"<think>\n{fenced(GOOD)}", "stop", ParseStatus.UNCLOSED_THOUGHT),
    "prose": ("Use a tiled kernel with class ModelNew.", "stop", ParseStatus.NO_CODE),
    "only a kernel": (fenced("void f() {}\n", "cpp"), "stop", ParseStatus.NO_MODEL),
    "only a diff": (fenced(GOOD, "diff"), "stop", ParseStatus.NO_MODEL),
    "the second kernel was cut": (fenced(OLD) + HALF, "length", ParseStatus.TRUNCATED),
    "a book": ("x" * 600_000, "stop", ParseStatus.TOO_LARGE),
    "deep operators": ("-" * 100_000 + "1", "stop", ParseStatus.NO_CODE),
    "two kernels": (fenced(OLD) + fenced(GOOD), "stop", ParseStatus.AMBIGUOUS),
    "rest unchanged": (fenced(GOOD + "# ... rest unchanged ...\n"), "stop", ParseStatus.ELIDED),
    "hollow forward": (fenced(GOOD.replace("return x", "...")), "stop", ParseStatus.ELIDED),
    "TODO body": (fenced(GOOD.replace("return x", "pass  # TODO")), "stop", ParseStatus.ELIDED),
    "same as before in C++": (
        fenced(f'K = r"""\nvoid f() {{\n  // same as before\n}}\n"""\n{GOOD}'),
        "stop",
        ParseStatus.ELIDED,
    ),
    "too large": (fenced(GOOD + "x = 1\n" * 11000), "stop", ParseStatus.TOO_LARGE),
    "NUL": (fenced(GOOD + "\0"), "stop", ParseStatus.INVALID_TEXT),
    "broken UTF-8": (fenced(GOOD + "# \udc80\n"), "stop", ParseStatus.INVALID_TEXT),
    "deep nesting": ("(" * 50_000, "stop", ParseStatus.NO_CODE),
}


@pytest.mark.parametrize("name", REFUSED)
def test_every_other_answer_has_its_class(name: str) -> None:
    """No answer crashes the parser, and none but a whole kernel gives a source."""
    text, finish, status = REFUSED[name]
    answer = parse(text, finish)
    assert answer.status is status
    assert answer.source == ""


def test_techniques_are_read_from_the_metadata_line() -> None:
    """The line is optional, and a broken one counts as absent."""
    line = '# kforge: {"techniques": ["vectorize", "tile"], "note": "wide"}\n'
    answer = parse(fenced(line + GOOD), "stop")
    assert (answer.techniques, answer.note) == (("vectorize", "tile"), "wide")
    assert parse(fenced("# kforge: {broken}\n" + GOOD), "stop").status is ParseStatus.OK


@pytest.mark.parametrize(
    "comment",
    [
        "# weights are unchanged by this call",
        "#pragma omp parallel for",
        "// the remaining columns do not fill a vector",
        "# same as Model, but fused",
        "# the kernel leaves the input unchanged",
        "// the rest of the row is handled the same way",
        "// columns 0, 1, ... remaining ones in the tail",
        "// TODO: tune the tile",
    ],
)
def test_ordinary_comments_are_no_placeholders(comment: str) -> None:
    """A comment that describes code does not stand for code."""
    assert not elided(f"{comment}\n{GOOD}")


@pytest.mark.parametrize(
    "comment",
    [
        "# ... existing code ...",
        "# ...",
        "# rest of the class unchanged",
        "// remaining code omitted for brevity",
        "# forward method is unchanged",
        "// same as above",
        "# your implementation here",
        "# TODO: implement the kernel",
    ],
)
def test_placeholders_are_seen(comment: str) -> None:
    """A comment that stands for code is no code."""
    assert elided(f"{GOOD}    {comment}\n")


def test_many_fences_take_no_time() -> None:
    """An answer made to be slow is parsed in well under a second."""
    started = time.monotonic()
    parse(f"{FENCE}\n{FENCE}\n" * 60_000, "stop")
    parse("<think>\n" * 60_000, "stop")
    assert time.monotonic() - started < 5


def test_every_class_is_documented() -> None:
    """The page for users lists them all."""
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
    assert not [s for s in ParseStatus if f"`{s}`" not in page]


def test_a_backward_may_refuse() -> None:
    """Only a `forward` must return something."""
    assert not elided("class F:\n    def backward(ctx):\n        raise NotImplementedError\n")


def test_a_tag_is_never_part_of_the_code() -> None:
    """`cpp` is a tag of its own, not `c` followed by `pp`."""
    assert [(b.language, b.text) for b in blocks(fenced("int x;\n", "cpp"))] == [
        ("cpp", "int x;\n")
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('```json\n{"a": {"b": 2}}\n```', '{"a": {"b": 2}}'),
        ('<think>{"a": 0}</think>Here: {"a": 1}. Done', '{"a": 1}'),
        ("no object", ParseStatus.BAD_JSON),
        ('<think>{"a": 1}', ParseStatus.UNCLOSED_THOUGHT),
        (None, ParseStatus.NULL),
    ],
)
def test_json_is_found_in_prose(text: str | None, found: str) -> None:
    """The object is cut out of fences, prose and thought."""
    assert json_object(text, "stop") == found
