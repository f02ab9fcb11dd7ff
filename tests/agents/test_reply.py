"""The parser against answers that known extractors get wrong (LLM.md, section 5)."""

import time
from pathlib import Path

import pytest

from agents.elision import elided
from agents.fences import blocks
from agents.reply import ParseStatus, json_object, parse
from tests.agents.replies import FENCE, GOOD, REFUSED, TAKEN, fenced


@pytest.mark.parametrize("name", TAKEN)
def test_the_right_block_is_taken(name: str) -> None:
    """The source is the block that holds the kernel, byte for byte."""
    text, source = TAKEN[name]
    answer = parse(text, "stop")
    assert answer.status is ParseStatus.OK
    assert answer.source.rstrip() == source.rstrip()


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


def test_the_corpus_is_large() -> None:
    """At least sixty awkward replies, of every class."""
    assert len(TAKEN) + len(REFUSED) >= 60
    classes = {status for _, _, status in REFUSED.values()} | {ParseStatus.OK}
    assert classes == set(ParseStatus) - {ParseStatus.BAD_JSON, ParseStatus.CONTRADICTED}
