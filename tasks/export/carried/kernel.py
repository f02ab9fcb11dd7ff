"""A verified kernel as a torch operator: what it takes, what it returns, the call."""

import importlib
import threading
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from . import strictness

Signature = tuple[torch.dtype, tuple[int, ...]]
PLACES = ("CPU", "CUDA", "XPU", "MPS")
"""Dispatch keys of the places on which a kernel may run; one that does not fit is told so."""
ALIGNED = 64
"""Bytes to which torch aligns what it allocates: vector loads of a kernel may count on it."""


class UnverifiedError(RuntimeError):
    """An input for which no kernel was verified, where the reference must not stand in."""


class UnavailableError(RuntimeError):
    """The kernel cannot be built or loaded here, where the reference must not stand in."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One size at which the kernel was found right."""

    shape: str
    variant: int
    """Which of the kernel's constructor arguments."""
    sizes: dict[str, int] | None
    """Keywords of `get_inputs`; None where the judge made the size itself."""
    inputs: tuple[Signature, ...]
    state: tuple[Signature, ...]
    outputs: tuple[Signature, ...]

    @property
    def tensors(self) -> tuple[Signature, ...]:
        return self.inputs + self.state


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the export knows of a kernel."""

    name: str
    operator: str
    place: str
    """Type of the torch device: cpu, cuda, xpu, mps."""
    card: str
    """Name of the accelerator on which it was verified; empty on a processor."""
    policy: str
    """Precision: strict, tf32, half."""
    inputs: tuple[str, ...]
    state: tuple[str, ...]
    returns: str
    """tensor, tuple or list."""
    kinds: tuple[str, ...]
    variants: tuple[tuple[Any, ...], ...]
    """Constructor arguments."""
    cases: tuple[Case, ...]


class Kernel:
    """A kernel entered in `torch.ops`; nothing is compiled before its first call."""

    def __init__(self, package: str, library: torch.library.Library, facts: Facts) -> None:
        self.facts = facts
        self.package = package
        self._local = threading.local()
        self._warned = False
        names = [n.replace(".", "_") for n in (*facts.inputs, *facts.state)]
        results = ", ".join("Tensor" for _ in facts.cases[0].outputs)
        returned = results if facts.returns == "tensor" else f"({results})"
        tensors = "".join(f"Tensor {name}, " for name in names)
        schema = f"{facts.name}({tensors}int variant=0) -> {returned}"
        library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        for place in PLACES:
            library.impl(facts.name, self._run, place)
        full = f"{package}::{facts.name}"
        torch.library.register_fake(full, self._fake, lib=library, allow_override=True)
        self.op = getattr(getattr(torch.ops, package), facts.name)

    def __deepcopy__(self, _memo: object) -> "Kernel":
        return self  # a copied model goes on with the same operator

    def takes(self, variant: int | None, tensors: Sequence[Any]) -> bool:
        """Whether the kernel was verified for tensors of these types, shapes and places."""
        return variant is not None and self._case(variant, tensors) is not None

    def is_here(self, index: int | None) -> bool:
        """Whether that accelerator is of the kind on which the kernel was verified."""
        return not self.facts.card or _card(self.facts.place, index or 0) == self.facts.card

    def described(self) -> str:
        """The sizes that it takes, for an error message."""
        found = (", ".join(map(_shown, case.inputs)) for case in self.facts.cases)
        return "; ".join(dict.fromkeys(found))

    def _case(self, variant: int, tensors: Sequence[Any]) -> Case | None:
        for case in self.facts.cases:
            if case.variant == variant and _match(case.tensors, tensors, self.facts.place):
                return case
        return None

    def _verified(self, variant: int, tensors: Sequence[Tensor], place: str) -> Case:
        """The case; UnverifiedError when there is none, or where gradients would be lost."""
        for case in self.facts.cases:
            if case.variant == variant and _match(case.tensors, tensors, place):
                break
        else:
            given = ", ".join(_shown((t.dtype, tuple(t.shape))) for t in tensors)
            raise UnverifiedError(
                f"{self.facts.name} was not verified for {given} on {tensors[0].device.type} "
                f"(variant {variant}); inputs verified on {self.facts.place}: {self.described()}"
            )
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            raise UnverifiedError(f"{self.facts.name} has no gradients: call it in torch.no_grad()")
        return case

    def _fake(self, *arguments: Any) -> Any:
        """Results without values, for torch.compile."""
        given, variant = _split(arguments)
        case = self._verified(variant, given, given[0].device.type)
        made = [torch.empty(s, dtype=d, device=given[0].device) for d, s in case.outputs]
        return made[0] if self.facts.returns == "tensor" else tuple(made)

    def _run(self, *arguments: Any) -> Any:
        given, variant = _split(arguments)
        case = self._verified(variant, given, self.facts.place)
        plain = [_plain(t.detach()) for t in given]
        device = plain[0].device
        guard = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
        with torch.no_grad(), guard:
            model = self._model(variant, device)
            found = _called(model, self.facts.state, plain)
        results = found if isinstance(found, tuple | list) else (found,)
        told = [(r.dtype, tuple(r.shape)) for r in results]
        if told != list(case.outputs):
            shown = ", ".join(map(_shown, told))
            raise RuntimeError(f"{self.facts.name} returned {shown}: the package is damaged")
        own = [_own(r, given) for r in results]
        return own[0] if self.facts.returns == "tensor" else tuple(own)

    def _model(self, variant: int, device: torch.device) -> nn.Module:
        """An instance of the kernel for the thread; the reference where it cannot be built."""
        known: dict[Any, nn.Module] = self._local.__dict__.setdefault("models", {})
        if (variant, device) not in known:
            made = self._built("ModelNew", "kernels", self.facts.name)
            arguments = self.facts.variants[variant]
            with torch.random.fork_rng(devices=[]):
                known[variant, device] = made(*arguments).to(device)
        return known[variant, device]

    def _built(self, kind: str, folder: str, name: str) -> Any:
        try:
            return getattr(importlib.import_module(f"{self.package}.{folder}.{name}"), kind)
        except (RuntimeError, OSError, ImportError) as fault:
            first = (str(fault).strip().splitlines() or ["no message"])[0]
            told = f"{self.facts.name} cannot be built here: {first}"
            if strictness.required():
                raise UnavailableError(told) from fault
            if not self._warned:
                self._warned = True
                warnings.warn(f"{told}; PyTorch computes it", RuntimeWarning, stacklevel=2)
            return self.reference()

    def reference(self) -> Any:
        """The class that computes the operator in PyTorch."""
        module = importlib.import_module(f"{self.package}.operators.{self.facts.operator}")
        return module.Model


def _split(arguments: Sequence[Any]) -> tuple[Sequence[Tensor], int]:
    """Tensors and variant; torch leaves an argument out that has its default."""
    last = arguments[-1]
    return (arguments[:-1], last) if isinstance(last, int) else (arguments, 0)


def _match(signatures: Sequence[Signature], tensors: Sequence[Any], place: str) -> bool:
    if len(signatures) != len(tensors):
        return False
    for (dtype, shape), tensor in zip(signatures, tensors, strict=True):
        if not isinstance(tensor, Tensor) or tensor.dtype != dtype:
            return False
        if tensor.device.type != place or tuple(tensor.shape) != shape:
            return False
    return True


def _shown(signature: Signature) -> str:
    """`float32[67, 769]`."""
    return f"{str(signature[0]).removeprefix('torch.')}{list(signature[1])}"


def _plain(tensor: Tensor) -> Tensor:
    """The tensor contiguous and aligned as freshly allocated ones are."""
    tensor = tensor.resolve_conj().resolve_neg().contiguous()
    return tensor.clone() if tensor.data_ptr() % ALIGNED else tensor


def _own(result: Tensor, given: Sequence[Tensor]) -> Tensor:
    """The result in memory of its own, contiguous: what torch.compile is told."""
    held = {t.untyped_storage().data_ptr() for t in given}
    result = result.detach().contiguous()
    return result.clone() if result.untyped_storage().data_ptr() in held else result


def _called(model: nn.Module, state: Sequence[str], tensors: Sequence[Tensor]) -> Any:
    """The model's answer with these tensors in the place of its parameters and buffers."""
    inputs = len(tensors) - len(state)
    places = []
    for path, tensor in zip(state, tensors[inputs:], strict=True):
        owner, _, name = path.rpartition(".")
        home = model.get_submodule(owner)
        held = home._parameters if name in home._parameters else home._buffers  # noqa: SLF001
        held[name] = tensor  # a plain tensor serves for one call
        places.append((held, name))
    result = model(*tensors[:inputs])
    for held, name in places:
        held[name] = None  # a model that is deleted takes its weights along
    return result


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch is untyped here
def _card(place: str, index: int) -> str:
    return str(getattr(torch, place).get_device_name(index))
