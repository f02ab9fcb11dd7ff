"""Whether the reference may stand in for a kernel: one switch a process."""

_REQUIRED = False


def require_verified(required: bool = True) -> None:  # noqa: FBT001, FBT002  (a switch)
    """From now on an input without a verified kernel raises UnverifiedError; False undoes it."""
    global _REQUIRED  # noqa: PLW0603  (one switch a process)
    _REQUIRED = required


def required() -> bool:
    """Whether the reference must not stand in."""
    return _REQUIRED
