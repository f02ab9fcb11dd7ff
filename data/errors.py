"""Everything that KForge raises on purpose.

::

    KForgeError            a person can act on the message; exit code 1
    ├── MisuseError        what was asked cannot be meant: exit code 2
    │   └── OperatorError  a file that is no operator, a suite without operators
    ├── MachineError       the world's fault: host, tool, disk, lease; retried where it may pass
    ├── LimitError     a campaign's hours, device minutes or tokens are used up
    ├── StandingError  accepted kernels lost their standing when they were looked at again
    ├── ExportError    a confirmed kernel cannot be carried away as it is
    ├── LedgerError        the ledger cannot be read or written
    ├── ReplayError        a replay came to where its recording does not lead
    └── ModelError         the language model's side: transport, refusal of the key, garbage
        ├── BudgetError    the next call could cost more than what is left
        └── ContextError   the prompt is longer than the model takes: ask with less

A kernel that does not build, crashes, hangs or is wrong is none of these: it is a verdict.
"""


class KForgeError(Exception):
    """A fault that a person can act on; the message is one line and says what to do."""


class MisuseError(KForgeError):
    """The command, its arguments or an input file cannot be meant."""


class OperatorError(MisuseError):
    """A file is not an operator in KernelBench form, or a suite holds none."""


class MachineError(KForgeError):
    """A machine, a tool on it, its disk or its lease failed: never the candidate's fault.

    Not `retryable` is what cannot pass by itself: a changed host key, a refused key.
    """

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


class LimitError(KForgeError):
    """A campaign has taken what it may; it can go on another time."""


class StandingError(KForgeError):
    """A re-qualification found accepted kernels that are wrong now, or slower."""


class ExportError(KForgeError):
    """What was asked for cannot go into a package."""


class LedgerError(KForgeError):
    """The ledger's folder cannot be read or written."""


class ReplayError(KForgeError):
    """A prompt, a move or a verdict of a replay is not the one on record."""


class ModelError(KForgeError):
    """The language model could not answer; `retryable` says whether asking again may help."""

    def __init__(
        self, message: str, *, retryable: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class BudgetError(ModelError):
    """The worst case of the next call is above what is left of the budget."""


class ContextError(ModelError):
    """The prompt is longer than the model takes; a shorter one may do."""
