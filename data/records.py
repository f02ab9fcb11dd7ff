"""The values that travel between generator, judge, analyst and ledger.

All are frozen and hold plain data only, so that each can cross a process border as JSON
(`data/codec.py`). This module is part of what is shipped to machines: stdlib only.
"""

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

from data.guardrails import Guardrails
from data.memory import Lesson, Reference
from data.oracle import Oracle
from data.verdict import Outcome, Verdict


def digest(*parts: str) -> str:
    """16 hexadecimal digits that identify the parts, in order."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Policy(StrEnum):
    """Which precision the arithmetic may have (JUDGE.md, section 3)."""

    STRICT = "strict"
    TF32 = "tf32"
    HALF = "half"


class LibraryPolicy(StrEnum):
    """What library compute beside own kernels means (JUDGE.md, section 6)."""

    FLAGGED = "flagged"
    REFUSED = "refused"
    ALLOWED = "allowed"


class ShapePolicy(StrEnum):
    """Whether a kernel may be made for the given shapes only."""

    FIXED = "fixed"
    FAMILY = "family"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """The terms under which a candidate is judged; every speed-up is under one of them."""

    policy: Policy = Policy.STRICT
    library: LibraryPolicy = LibraryPolicy.FLAGGED
    shapes: ShapePolicy = ShapePolicy.FIXED

    def __str__(self) -> str:
        return f"{self.policy}/{self.library}/{self.shapes}"


class OutputKind(StrEnum):
    """How an output is compared with the oracle."""

    FLOAT = "float"
    INDEX = "index"
    QUANTIZED = "quantized"
    BOOL = "bool"
    INTEGER = "integer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What is computed: a Python source in KernelBench form."""

    name: str
    source: str
    suite: str = "kforge"
    family: str | None = None
    level: int | None = None

    @property
    def hash(self) -> str:
        """Content hash of the source alone: the name does not matter."""
        return digest(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Peaks of a device; measured where `measured`, else from the vendor's sheet."""

    peak_gb_s: float
    """Bytes per second to and from main memory, 1e9."""
    peak_tflop_s: dict[str, float] = field(default_factory=dict)
    """By dtype: float32, tf32, bfloat16, float16; 1e12 operations per second."""
    memory_gib: float = 0.0
    cores: int = 1
    cache_mib: float = 0.0
    """Last-level cache that one process can count on."""
    simd: str = ""
    measured: bool = False


TIMED = ("hardware", "simulated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The hardware that a result names."""

    name: str
    target: str
    """Key of `targets.TARGETS`."""
    vendor: str
    arch: str
    machine: str = "local"
    index: int = 0
    execution: str = "hardware"
    """`hardware`, `emulated` or `none`; `simulated` in ledgers that are marked as such."""
    language: str = ""
    """What its kernels are written in; empty for the one that its target prefers."""

    @property
    def timed(self) -> bool:
        """Whether it has times: an emulated device never has, a simulated one made-up ones."""
        return self.execution in TIMED


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """Shape and dtype of an input, a parameter or an output."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """As torch spells it without the prefix: float32, int64, bool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One ATen call of the traced operator.

    `op` is `input`, `parameter`, `output` or an ATen name such as `aten.softmax.int`.
    In `args` and `kwargs` another node's result is written `{"node": NAME}`; everything else is
    plain JSON. `shape` and `dtype` describe a single-tensor result and are empty otherwise.
    """

    name: str
    op: str
    args: tuple[object, ...] = ()
    kwargs: dict[str, object] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    dtype: str = ""


OFFICIAL, SMALL = "full", "small"
"""Names of shapes: the one that a speed-up is of, and the one for heavy draws, never timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One size at which an operator is judged, with its analytic cost."""

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    flops: float | None
    """Operations of one call; None where unknown."""
    moved_bytes: float
    """Bytes that must cross main memory once: inputs, parameters and outputs unless declared."""
    floor_us: float | None
    """Roofline floor on this device under this contract; None where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Whether the operator can tell right from wrong, and what it is."""

    outcome: Outcome | None
    """None when admitted."""
    reason: str
    shapes: tuple[Shape, ...] = ()
    parameters: tuple[TensorSpec, ...] = ()
    graph: tuple[Node, ...] = ()
    """The traced operator at the full shape; empty when it cannot be traced."""
    oracle: Oracle | None = None
    """What the probes found; None where they did not run."""
    baseline_us: dict[str, float] = field(default_factory=dict)
    """Time of the faster stock form by shape; empty where it was not measured."""
    call_bytes: int | None = None
    """Inputs, parameters and outputs of one call at the official shape."""
    seconds: float = 0.0
    marks: tuple[str, ...] = ()
    """Observations that refuse nothing, such as `parameter bias ignored`."""
    card: Card | None = None
    """Peaks of the device, measured on the machine."""
    environment: dict[str, str] = field(default_factory=dict)
    """Versions and flags that a number depends on: torch, compiler, processor, threads."""

    @property
    def admitted(self) -> bool:
        return self.outcome is None

    @property
    def official(self) -> Shape | None:
        """The official shape: the one named `full`, else the last; None before sizes are known."""
        named = [s for s in self.shapes if s.name == OFFICIAL]
        return next(iter([*named, *self.shapes[-1:]]), None)

    @property
    def scales(self) -> tuple[float, ...]:
        """Of zero-mean inputs, for the jobs of this operator."""
        return self.oracle.scales if self.oracle else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One kernel source."""

    source: str
    """A Python module in `ModelNew` form; empty when the generator gave none."""
    language: str
    agent_kind: str
    """`offline`, `llm`, `given`, `scripted`."""
    agent_name: str
    model: str | None = None
    parents: tuple[str, ...] = ()
    """Ids of the candidates that it was made from."""
    reference: str | None = None
    """Id of a foreign kernel shown to the generator."""
    techniques: tuple[str, ...] = ()
    """Declared, tags of `data/techniques.py`."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Schedule parameters of a template."""
    note: str = ""
    prompt_hash: str | None = None
    parse_status: str = "ok"
    """What the reply parser said; `ok` when there is a source."""

    @property
    def id(self) -> str:
        return digest(self.language, self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One compiler message."""

    file: str
    line: int | None
    severity: str
    """`error`, `warning` or `note`."""
    message: str
    source_line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number of a profile or a compiler's report, in the common vocabulary."""

    name: str
    value: float
    unit: str
    source: str
    """Who said it: `roofline`, `g++`, the vendor's counter name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """What the compiler made of the candidate's sources."""

    ok: bool
    route: str
    """`launcher` (compiled apart from running) or `one-phase` (import builds)."""
    diagnostics: tuple[Diagnostic, ...] = ()
    metrics: tuple[Metric, ...] = ()
    remarks: tuple[str, ...] = ()
    """Vectorisation remarks, `line: text`, most telling first."""
    command: str = ""
    log: str = ""
    """Cut in the middle when long."""
    seconds: float = 0.0
    detail: str = ""
    """One sentence when not ok, or not executable."""
    executable: bool = True
    """Whether what was built can be executed there: an emulator has less than the hardware."""

    @property
    def runs(self) -> bool:
        return self.ok and self.executable


class RunStatus(StrEnum):
    """How far a built candidate came."""

    RAN = "ran"
    IMPORT_FAILED = "import_failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    BAD_STRUCTURE = "bad_structure"
    """Count, type, shape or dtype of the outputs."""
    WRONG = "wrong"
    INPUT_CHANGED = "input_changed"
    DEFERRED = "deferred"
    """The answer was not there when the call was said to be done."""
    FORGED = "forged"
    """The process ended or spoke out of turn instead of answering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One comparison with the oracle."""

    shape: str
    distribution: str
    error: float | None
    """Norm-relative error over the limit's unit, max(e0, floor): honest kernels are below 11."""
    worst: float | None
    """The same for the largest element."""
    ok: bool
    located: str = ""
    """Where it is wrong: indices, pattern; never the expected values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Paired times of one shape. Every ratio is baseline time over candidate time."""

    shape: str
    baseline: str
    """`eager`, `torch.compile`."""
    ratio: float
    low: float
    high: float
    """95 % interval over the pairs of fresh processes."""
    pair_ratios: tuple[float, ...]
    candidate_us: float
    baseline_us: float
    """Medians, for orientation only: compare the ratio."""
    parent_ratio: float | None = None
    """Parent time over candidate time, timed in the same pairs."""
    parent_low: float | None = None
    parent_high: float | None = None
    floor_us: float | None = None
    """Roofline floor."""
    null_us: float = 0.0
    """The judge's own cost a call, included in both times; 0 on a device, where it is taken off."""
    others_us: dict[str, float] = field(default_factory=dict)
    """Median times of the baselines that lost, by name."""
    warm: bool = False
    """True where all input sets together fit the last-level cache."""
    samples_us: tuple[float, ...] = ()
    """Raw candidate times, in order."""
    allocation: float = 1.0
    """Further gain from memory that only the baseline takes anew; `ratio` is without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What the analyst reads: at most 25 metrics of the best candidate."""

    metrics: tuple[Metric, ...]
    remarks: tuple[str, ...] = ()

    def value(self, name: str) -> float | None:
        return next((m.value for m in self.metrics if m.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Evidence of one candidate on one device. `data/verdict.py` makes the verdict of it."""

    status: RunStatus
    detail: str = ""
    """One sentence for people and for the generator."""
    draws: tuple[Draw, ...] = ()
    timings: tuple[Timing, ...] = ()
    library_ops: tuple[str, ...] = ()
    """ATen compute operators that the candidate called."""
    authored: bool | None = None
    """Whether memory written by other code than ATen reaches the output; None if not traced."""
    review: tuple[str, ...] = ()
    """Reasons to look again: above 10x, below the floor."""
    isolation: str = ""
    """The rung of the sandbox ladder."""
    execution: str = "hardware"
    """As the device's."""
    environment: dict[str, str] = field(default_factory=dict)
    log: str = ""
    seconds: float = 0.0
    counted: Profile | None = None
    """What the vendor's profiler counted; None where it is not there or nothing was timed."""

    def __post_init__(self) -> None:
        if self.timings and self.status is not RunStatus.RAN:
            raise ValueError("a candidate that was not right has no time")
        if self.timings and self.execution not in TIMED:
            raise ValueError(f"{self.execution} execution has no time")


class Bottleneck(StrEnum):
    """What holds a kernel back."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    LAUNCH = "launch"
    OCCUPANCY = "occupancy"
    NONE = "none"
    """Close to the roofline: stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A metric that an advice cites."""

    metric: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Exactly one change that the analyst wants."""

    bottleneck: Bottleneck
    evidence: tuple[Evidence, ...]
    change: str
    technique: str
    """Tag of `data/techniques.py`."""
    parameters: dict[str, str] = field(default_factory=dict)
    expected_gain: float | None = None
    """Predicted time ratio before over after: 1.2 means 20 % faster."""
    confidence: float | None = None
    agent_kind: str = "offline"
    agent_name: str = "rules"
    model: str | None = None
    replaced: str = ""
    """Why a model's advice was dropped for this one; empty when it was not."""


class Mode(StrEnum):
    """What a step does."""

    CREATE = "create"
    FIX = "fix"
    OPTIMISE = "optimise"
    TRANSLATE = "translate"
    CONFIRM = "confirm"
    ADMIT = "admit"
    """A pair that ended before a candidate: its row holds the outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What to do next, decided from the history alone."""

    mode: Mode
    step: int
    """Counts all steps of the pair from 0."""
    lineage: str
    """`a`, `b`, `c`: one for each first candidate."""
    parent: str | None = None
    """Candidate id to start from."""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmCall:
    """One request to a language model and its answer."""

    role: str
    """`generator` or `analyst`."""
    model: str
    prompt_hash: str
    prompt: str
    reply: str | None
    reasoning: str | None
    finish_reason: str | None
    parse_status: str
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    usage: str
    """The provider's usage object as JSON, untouched."""
    price: dict[str, float] = field(default_factory=dict)
    """Dollars a token by kind; empty when unknown."""
    cost_usd: float | None = None
    """None when unknown, never 0 for it."""
    attempts: int = 1
    seconds: float = 0.0
    started_at: str = ""
    images: tuple[str, ...] = ()
    """Pictures sent with the prompt: caption and hash of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """All that is known of one step: one row of the ledger."""

    run_id: str
    epoch: str
    operator: Operator
    device: Device
    contract: Contract
    move: Move
    verdict: Verdict | Outcome
    reason: str
    needs_review: bool = False
    candidate: Candidate | None = None
    build: BuildResult | None = None
    run: RunResult | None = None
    profile: Profile | None = None
    """Of this candidate; what the analyst saw for the *next* step."""
    advice: Advice | None = None
    """The advice that this step carried out."""
    calls: tuple[LlmCall, ...] = ()
    detected: tuple[str, ...] = ()
    """Techniques that rules found in the source."""
    techniques_added: tuple[str, ...] = ()
    """Tags that the parent had not."""
    speedup: float | None = None
    """Geometric mean over the shapes of baseline time over candidate time."""
    speedup_low: float | None = None
    speedup_high: float | None = None
    gain_over_parent: float | None = None
    baseline: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    started_at: str = ""
    ended_at: str = ""

    def __post_init__(self) -> None:
        if self.speedup is not None and self.baseline is None:
            raise ValueError("a speed-up without its baseline")
        if not self.device.timed and (self.speedup is not None or (self.run and self.run.timings)):
            raise ValueError(
                f"a time on {self.device.name}, whose execution is "
                f"{self.device.execution}: only hardware has one"
            )

    @property
    def candidate_id(self) -> str | None:
        return self.candidate.id if self.candidate and self.candidate.source else None

    @property
    def right(self) -> bool:
        return self.verdict in (Verdict.CORRECT, Verdict.FASTER)


class Strategy(StrEnum):
    """How a search spends its calls; the others are arms that the usual one is compared with."""

    PAIR = "pair"
    """Two agents: what is right is profiled, advised and sped up."""
    SINGLE = "single"
    """The generator alone: it chooses the change itself."""
    SAMPLING = "sampling"
    """First candidates only, each from nothing."""
    LADDER = "ladder"
    """One first candidate, the plainest that templates have, and techniques onto it one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The limits of a pair."""

    steps: int = 8
    """Candidates at most, the confirmation not counted."""
    first: int = 3
    """First candidates, with different hints."""
    fixes: int = 3
    """Tries to mend one candidate."""
    seed: int = 0
    start: str | None = None
    """Source of a kernel to start from, same or foreign language."""
    include: dict[str, str] = field(default_factory=dict)
    """Auxiliary sources by file name."""
    guardrails: Guardrails = field(default_factory=Guardrails)
    reference: str | None = None
    """Device whose best confirmed kernel is shown; None: the arm without one."""
    strategy: Strategy = Strategy.PAIR
    compact: bool = False
    """Prompts of at most 1,500 tokens, for small models."""
    calls: int | None = None
    """Requests to models that the pair may make; None: nobody counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What a target tells the generator: its languages, its rules, one verified example."""

    language: str
    guide: str
    example_operator: str
    """The PyTorch half of the example."""
    example_kernel: str
    """Its counterpart for this target in `ModelNew` form."""
    facts: tuple[str, ...] = ()
    """Entries of the environment that concern its kernels; empty: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One operator on one device under one contract: what a subflow ports."""

    run_id: str
    epoch: str
    operator: Operator
    device: Device
    contract: Contract
    settings: Settings
    brief: Brief
    lessons: tuple[Lesson, ...] = ()
    """What verdicts on record say of techniques for this device and family."""
    reference: Reference | None = None

    @property
    def name(self) -> str:
        return f"{self.operator.name}@{self.device.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """All that an agent may know when it is asked: it is stateless and rebuilt for every call."""

    pair: Pair
    admission: Admission
    move: Move
    history: tuple[Iteration, ...]
    profile: Profile | None = None
    """Of the move's parent."""
    advice: Advice | None = None
    """The analyst's, when the generator optimises."""

    @property
    def parent(self) -> Iteration | None:
        """The iteration whose candidate the move starts from; the latest if judged twice."""
        known = (i for i in reversed(self.history) if i.candidate_id == self.move.parent)
        return next(known, None) if self.move.parent else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A generator's answer: a candidate, or why there is none."""

    candidate: Candidate | None
    outcome: Outcome | None = None
    """NOT_COVERED when the offline library has no template."""
    reason: str = ""
    calls: tuple[LlmCall, ...] = ()

    def __post_init__(self) -> None:
        if (self.candidate is None) == (self.outcome is None):
            raise ValueError("a proposal holds a candidate or an outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counsel:
    """An analyst's answer; no advice means that nothing is worth trying."""

    advice: Advice | None
    reason: str = ""
    calls: tuple[LlmCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureJob:
    """What the judge on the device's machine is asked."""

    operator: Operator
    device: Device
    contract: Contract
    source: str
    parent_source: str | None = None
    """Timed in the same pairs, for the gain over the parent."""
    pairs: int = 3
    """Pairs of fresh processes; 0 means correctness only."""
    thorough: bool = False
    """The confirming run: hidden distributions and more draws."""
    scales: tuple[float, ...] = ()
    """Of zero-mean inputs, beside 1: what `Oracle.scales` of the admission asks for."""
    seed: int | None = None
    """None: secret, drawn by the judge. A number only in tests."""
    deadline_s: float = 120.0
