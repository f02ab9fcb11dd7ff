"""Who plays the two roles of a campaign and what that may cost."""

import base64
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from agents.budget import PAIR_CALLS, PAIR_USD
from agents.images import Image, size
from agents.llm import DEADLINE_S, MAX_TOKENS
from agents.price import Price
from data.errors import MisuseError
from data.guardrails import Guardrails

MILLION = 1e6
COMMAND_S = 1800.0
"""A coding agent took up to half an hour a kernel (LLM.md, section 7); a person takes longer."""
Dollars = Annotated[float, Field(ge=0)]
Role = Literal["generator", "analyst"]
Step = Literal["all", "create", "fix", "optimise", "translate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """The agents of a campaign."""

    kind: str = "offline"
    """`offline`, `llm` or `replay`."""
    models: tuple[str, ...] = ()
    """As litellm names them; the next is asked when one cannot be reached."""
    api_base: str | None = None
    effort: str | None = None
    """How much a model reasons, for those that can be told: minimal, low, medium, high."""
    price: Price | None = None
    """Instead of the list price, and for an endpoint that has none."""
    commands: dict[str, str] = field(default_factory=dict)
    """By role: a command that gets the prompt and prints the reply, instead of `kind`."""
    command_deadline_s: float = COMMAND_S
    calls: int = PAIR_CALLS
    """Requests for a pair, at most."""
    usd: float = PAIR_USD
    """Dollars for a pair, at most; binds where a price is known."""
    campaign_usd: float | None = None
    """Dollars for all pairs together."""
    max_tokens: int = MAX_TOKENS
    """Of an answer."""
    deadline_s: float = DEADLINE_S
    """For one request by the clock; a small model on a busy core needs more."""

    roofline: bool = False
    """Whether the analyst is shown a plot of it."""
    vision: bool | None = None
    """Whether the models can see; None: as litellm's table says."""
    screenshots: dict[str, str] = field(default_factory=dict)
    """PNG files for the analyst by name, in base64: a worker has no other copy."""
    recording: str | None = None
    """Of a replay: the hash of its file's text (`tasks/recording.py`)."""

    @property
    def keyless(self) -> bool:
        """Whether templates and rules do all, so that the loop can run anywhere."""
        return self.kind == "offline" and not self.commands

    def given(self) -> tuple[Image, ...]:
        """The pictures that the person gave."""
        return tuple(
            Image(caption=f"{name}, from the person who runs this", png=base64.b64decode(data))
            for name, data in self.screenshots.items()
        )


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class _Prices:
    """Dollars a million tokens, as price lists have them."""

    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    written: Dollars | None = None

    def each(self) -> Price:
        """Dollars a token."""
        return Price(
            input=self.input / MILLION,
            output=self.output / MILLION,
            cached=None if self.cached is None else self.cached / MILLION,
            written=None if self.written is None else self.written / MILLION,
        )


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class _Rails:
    required: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()
    append: dict[Step, str] = field(default_factory=dict)
    replace: dict[Step, str] = field(default_factory=dict)


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class _Pictures:
    roofline: bool = False
    vision: bool | None = None
    files: tuple[str, ...] = ()


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class CrewFile:
    """What `--crew FILE.toml` may hold."""

    fallbacks: tuple[str, ...] = ()
    effort: Literal["minimal", "low", "medium", "high"] | None = None
    price: _Prices | None = None
    max_tokens: Annotated[int, Field(ge=1)] = MAX_TOKENS
    deadline_s: Annotated[float, Field(gt=0)] = DEADLINE_S
    commands: dict[Role, str] = field(default_factory=dict)
    command_deadline_s: Annotated[float, Field(gt=0)] = COMMAND_S
    guardrails: _Rails = field(default_factory=_Rails)
    images: _Pictures = field(default_factory=_Pictures)

    def rails(self) -> Guardrails:
        """The part of it that the loop itself obeys."""
        return Guardrails(
            required=self.guardrails.required,
            banned=self.guardrails.banned,
            append={str(k): v for k, v in self.guardrails.append.items()},
            replace={str(k): v for k, v in self.guardrails.replace.items()},
        )

    def complete(self, crew: Crew, folder: Path = Path()) -> Crew:
        """The crew of the command line with what the file in `folder` adds."""
        return replace(
            crew,
            models=(*crew.models, *self.fallbacks) if crew.models else (),
            effort=self.effort,
            price=self.price.each() if self.price else None,
            commands={str(k): v for k, v in self.commands.items()},
            command_deadline_s=self.command_deadline_s,
            max_tokens=self.max_tokens,
            deadline_s=self.deadline_s,
            roofline=self.images.roofline,
            vision=self.images.vision,
            screenshots={Path(f).name: _screenshot(folder / f) for f in self.images.files},
        )


def read_crew(path: Path) -> CrewFile:
    """The file's content; MisuseError in one line when it cannot be read or meant."""
    try:
        text = path.read_text(encoding="utf-8")
        found = TypeAdapter(CrewFile).validate_python(tomllib.loads(text))
    except OSError as error:
        raise MisuseError(f"--crew {path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MisuseError(f"--crew {path} is not TOML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MisuseError(f"--crew {path}: {where}: {first['msg']} (docs/agents.md)") from None
    for pattern in (*found.guardrails.required, *found.guardrails.banned):
        _check(pattern, path)
    return found


def _screenshot(path: Path) -> str:
    """A PNG file in base64; MisuseError when no model would take it."""
    try:
        png = path.read_bytes()
        size(png)
    except OSError as error:
        raise MisuseError(f"images.files: {path} cannot be read: {error.strerror}") from None
    except MisuseError as error:
        raise MisuseError(f"images.files: {path} cannot be shown: {error}") from None
    return base64.b64encode(png).decode()


def _check(pattern: str, path: Path) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise MisuseError(f"--crew {path}: {pattern!r} is no regular expression: {error}") from None
