"""What a run demands of every source, and what it says to the generator: data of a person's own."""

import re
from dataclasses import dataclass, field

ALL = "all"
"""The key of what goes into every prompt, beside one for each mode of a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrails:
    """Patterns that a source must and must not match, and changes of the generator's prompts."""

    required: tuple[str, ...] = ()
    """Regular expressions, each found somewhere in the source."""
    banned: tuple[str, ...] = ()
    """Regular expressions, none found anywhere."""
    append: dict[str, str] = field(default_factory=dict)
    """Added to the prompt; by mode (`create`, `fix`, `optimise`, `translate`) or `all`."""
    replace: dict[str, str] = field(default_factory=dict)
    """Instead of the task of a mode; `all`: instead of role and rules."""

    def objection(self, source: str) -> str | None:
        """Why the source may not be used in this run; None when it may.

        >>> Guardrails(banned=("torch[.]matmul",)).objection("y = torch.matmul(a, b)")
        "the source holds what this run bans: 'torch.matmul' (torch[.]matmul)"
        """
        for pattern in self.banned:
            if found := re.search(pattern, source, re.MULTILINE):
                return f"the source holds what this run bans: {found[0][:80]!r} ({pattern})"
        for pattern in self.required:
            if not re.search(pattern, source, re.MULTILINE):
                return f"the source lacks what this run demands: {pattern}"
        return None
