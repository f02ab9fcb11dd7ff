"""The operator's own code, loaded and executed: trusted, never a candidate's."""

from __future__ import annotations

import inspect
import linecache
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from data.errors import KForgeError
from data.records import OFFICIAL, Operator, OutputKind
from targets.remote.recipe import Recipe, derived, seeded


class OperatorFault(KForgeError):  # noqa: N818 - the fault is a value at the border of admission
    """The operator's code cannot serve as a reference; the message is one sentence."""


@contextmanager
def foreign(what: str) -> Iterator[None]:
    """Whatever the operator's code raises inside becomes an OperatorFault."""
    try:
        yield
    except OperatorFault:
        raise
    except Exception as fault:
        first = (str(fault).strip().splitlines() or ["no message"])[0]
        raise OperatorFault(f"{what} fails with {type(fault).__name__}: {first[:300]}") from fault


class LoadedOperator:
    """An operator's functions at its declared shapes and at shapes derived from them.

    A derived shape has no entry in `shapes`: its name says it all (`targets/remote/recipe.py`).
    Whatever the operator's code raises becomes an OperatorFault.
    """

    def __init__(self, operator: Operator) -> None:
        self.name = operator.name
        self._module = _execute(operator)
        self.shapes: dict[str, dict[str, int]] = self._literal("SHAPES") or {OFFICIAL: {}}
        self.domains: tuple[str, ...] | None = _words(self._literal("DOMAINS"))
        kinds = _words(self._literal("OUTPUT"))
        with foreign("OUTPUT"):
            self.kinds = None if kinds is None else tuple(OutputKind(k) for k in kinds)
        self.silenced: tuple[str, ...] = ()
        """Modules whose dropout was set to 0, after the first model was made."""
        self.place = "cpu"
        """Torch's name of where the reference runs and inputs are handed out."""
        self._skeletons: dict[str, nn.Module] = {}

    @property
    def official(self) -> str:
        """Name of the official shape."""
        return OFFICIAL if OFFICIAL in self.shapes else next(reversed(self.shapes))

    @property
    def declared(self) -> bool:
        """Whether the file names its shapes; a plain KernelBench file has the official one only."""
        return bool(self._literal("SHAPES"))

    def init_args(self, shape: str) -> list[Any]:
        """Arguments of `Model`, by position; also where the file gives `[[args], {kwargs}]`."""
        with seeded(0), Recipe(), foreign("get_init_inputs"):
            given = self._call("get_init_inputs", shape)
            if _is_pair(given):
                return _by_position(self._module.Model, *given)
            return list(given)

    def inputs(self, shape: str, seed: int) -> list[Any]:
        """The official recipe under `seed`."""
        with seeded(seed), Recipe(derived(shape)), foreign("get_inputs"):
            drawn = self._call("get_inputs", shape)
        return list(drawn) if isinstance(drawn, (list, tuple)) else [drawn]

    def model(self, shape: str, seed: int) -> nn.Module:
        """A new `Model` in training mode, as KernelBench has it, with dropout silenced."""
        arguments = self.init_args(shape)
        with seeded(seed), Recipe(), foreign("Model"):
            model: nn.Module = self._module.Model(*arguments)
        self.silenced = silence(model)
        return model

    def skeleton(self, shape: str) -> nn.Module:
        """One `Model` a shape, made once: copy it, never run it."""
        base = derived(shape).base
        if base not in self._skeletons:
            self._skeletons[base] = self.model(base, 0)
        return self._skeletons[base]

    def flops(self, shape: str) -> float | None:
        """Operations of one call; None where the file does not say."""
        return self._figure("flops", shape)

    def moved_bytes(self, shape: str) -> float | None:
        """Bytes that must cross main memory; None where the file does not say."""
        return self._figure("moved_bytes", shape)

    def _figure(self, function: str, shape: str) -> float | None:
        if derived(shape).changes or not hasattr(self._module, function):
            return None
        with foreign(function):
            return float(self._call(function, shape))

    def _call(self, function: str, shape: str) -> Any:
        base = derived(shape).base
        if base not in self.shapes:
            raise OperatorFault(f"no shape {base!r}; known: {', '.join(self.shapes)}")
        return getattr(self._module, function)(**self.shapes[base])

    def _literal(self, name: str) -> Any:
        return getattr(self._module, name, None)


def _execute(operator: Operator) -> Any:
    """The module that the operator's source defines; its lines stay readable for torch.export."""
    name = f"kforge_operator_{operator.hash}"
    module = types.ModuleType(name)
    module.__file__ = f"<{operator.name}>"
    lines = operator.source.splitlines(keepends=True)
    linecache.cache[module.__file__] = (len(operator.source), None, lines, module.__file__)
    sys.modules[name] = module
    with seeded(0), Recipe(), foreign("the file"):
        exec(compile(operator.source, module.__file__, "exec"), module.__dict__)
    missing = [n for n in ("Model", "get_inputs", "get_init_inputs") if not hasattr(module, n)]
    if missing:
        raise OperatorFault(f"the file does not define {', '.join(missing)}")
    return module


def _words(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    return (value,) if isinstance(value, str) else tuple(value)  # type: ignore[arg-type]


def _is_pair(given: Any) -> bool:
    """Whether it is `[[args], {kwargs}]`."""
    return len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict)


def _by_position(function: Any, arguments: Any, keywords: dict[str, Any]) -> list[Any]:
    bound = inspect.signature(function).bind(*arguments, **keywords)
    bound.apply_defaults()
    if bound.kwargs:
        raise OperatorFault(f"Model takes {', '.join(bound.kwargs)} by keyword only")
    return list(bound.args)


def silence(model: nn.Module) -> tuple[str, ...]:
    """Names of the modules whose dropout was set to 0: a reference must not be random."""
    silenced = []
    for name, module in model.named_modules():
        for attribute in ("p", "dropout"):
            rate = getattr(module, attribute, None)
            drops = attribute == "dropout" or "Dropout" in type(module).__name__
            if drops and isinstance(rate, float) and rate > 0:
                setattr(module, attribute, 0.0)
                silenced.append(name or type(module).__name__)
    return tuple(silenced)
