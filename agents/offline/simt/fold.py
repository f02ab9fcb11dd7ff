"""Values of several threads made one: by shuffles where the language has them, else in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.offline.simt.dialect import Dialect
from agents.offline.simt.threads import Threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable that each thread has; `o_` before the name is the other thread's."""

    kind: str
    name: str


@dataclass(slots=True, kw_only=True)
class Folds:
    """The foldings of one kernel, and the shared memory that they take."""

    dialect: Dialect
    threads: Threads
    _sizes: dict[tuple[str, str], int] = field(default_factory=dict)
    """Of arrays in shared memory, by type and name."""
    _shuffled: bool = False

    @property
    def declarations(self) -> list[str]:
        """What the kernel declares before anything else."""
        made = [self.dialect.array(*key, size) for key, size in self._sizes.items()]
        exchange = self.dialect.exchange if self._shuffled else ""
        room = exchange.replace("@SIZE@", str(self.threads.threads))
        return [*made, *filter(None, [room])]

    def lanes(self, variables: Sequence[Variable], combine: str) -> list[str]:
        """Over the threads side by side; all of them have the result."""
        return self._neighbours(variables, combine, self.threads.across)

    def block(self, variables: Sequence[Variable], combine: str) -> list[str]:
        """Over all threads of a block."""
        return self._neighbours(variables, combine, self.threads.threads)

    def columns(self, variables: Sequence[Variable], combine: str) -> list[str]:
        """Over the parts of a column."""
        across, parts = self.threads.across, self.threads.beside
        if parts == 1:
            return []
        put = self._put(variables, "TID", self.threads.threads)
        return [
            *put, "SYNC;", *self._take(variables, "lane"),
            f"for (int k = 1; k < {parts}; ++k) {{",
            *self._others(variables, f"lane + k * {across}"), combine, "}", "SYNC;",
        ]  # fmt: skip

    def _neighbours(self, variables: Sequence[Variable], combine: str, width: int) -> list[str]:
        step = min(width, self.dialect.shuffles)
        out: list[str] = []
        if step > 1:
            self._shuffled = True
            out += [
                f"for (int d = {step // 2}; d > 0; d >>= 1) {{",
                *(f"const {v.kind} o_{v.name} = SHUFFLE({v.name}, d);" for v in variables),
                combine, "}",
            ]  # fmt: skip
        if width in (step, 1):
            return out
        return out + (self._few(variables, combine, width) if step else
                      self._tree(variables, combine, width))  # fmt: skip

    def _few(self, variables: Sequence[Variable], combine: str, width: int) -> list[str]:
        """One value for each group of threads that can shuffle."""
        step = self.dialect.shuffles
        put = self._put(variables, f"TID / {step}", self.threads.threads // step)
        first = f"TID / {width} * {width // step}"
        return [
            f"if (TID % {step} == 0) {{", *put, "}", "SYNC;",
            *self._take(variables, first),
            f"for (int k = 1; k < {width // step}; ++k) {{",
            *self._others(variables, f"{first} + k"), combine, "}", "SYNC;",
        ]  # fmt: skip

    def _tree(self, variables: Sequence[Variable], combine: str, width: int) -> list[str]:
        put = self._put(variables, "TID", self.threads.threads)
        return [
            *put, "SYNC;",
            f"for (int d = {width // 2}; d > 0; d >>= 1) {{",
            f"if (TID % {width} < d) {{",
            *self._others(variables, "TID + d"), combine, *put, "}", "SYNC;", "}",
            *self._take(variables, f"TID / {width} * {width}"), "SYNC;",
        ]  # fmt: skip

    def _put(self, variables: Sequence[Variable], at: str, size: int) -> list[str]:
        for k, v in enumerate(variables):
            self.array(f"s{k}_{v.kind}", v.kind, size)
        return [f"s{k}_{v.kind}[{at}] = {v.name};" for k, v in enumerate(variables)]

    def _take(self, variables: Sequence[Variable], at: str) -> list[str]:
        return [f"{v.name} = s{k}_{v.kind}[{at}];" for k, v in enumerate(variables)]

    def _others(self, variables: Sequence[Variable], at: str) -> list[str]:
        return [
            f"const {v.kind} o_{v.name} = s{k}_{v.kind}[{at}];" for k, v in enumerate(variables)
        ]

    def array(self, name: str, kind: str, size: int) -> None:
        """Shared memory under this name; the largest size that was asked for."""
        key = {"V": "float", "I": "int"}[kind], name
        self._sizes[key] = max(size, self._sizes.get(key, 0))
