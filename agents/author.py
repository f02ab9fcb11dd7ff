"""Who an answer is by, as rows name it, from the model's name alone."""

from dataclasses import dataclass

COMMAND = "command"
"""A program, a coding agent or a person (`agents/external.py`)."""
REPLAY = "replay"
"""Whoever the recording names: nobody was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """`agent_kind` and `agent_name` of a row."""

    kind: str
    name: str


def author(model: str) -> Author:
    """The author behind a model's name.

    >>> author("openai/gpt-5").kind, author("command/my-agent").name
    ('llm', 'command/my-agent')
    >>> author("replay/openai/gpt-5")
    Author(kind='replay', name='litellm')
    """
    replayed = model.startswith(f"{REPLAY}/")
    bare = model.removeprefix(f"{REPLAY}/")
    commanded = bare.startswith(f"{COMMAND}/")
    kind = REPLAY if replayed else COMMAND if commanded else "llm"
    return Author(kind=kind, name=bare if commanded else "litellm")
