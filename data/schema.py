"""The ledger's tables, one column a line: name, type, unit, meaning.

`python -m data.schema` writes them and the list of `data/queries/` into `docs/ledger.md`. A new
column is added at the end of its table with VERSION raised; older rows read as NULL there. A
column never changes its meaning.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

VERSION = 4

TEXT = pa.string()
WORDS = pa.list_(pa.string())
INTEGER = pa.int64()
REAL = pa.float64()
REALS = pa.list_(pa.float64())
TRUTH = pa.bool_()
TIME = pa.timestamp("us")

PAGE = Path(__file__).resolve().parent.parent / "docs" / "ledger.md"
QUERIES = Path(__file__).resolve().parent / "queries"
BEGIN = "<!-- written by `python -m data.schema` -->"
END = "<!-- end of what it wrote -->"
COLUMNS_NOTE = """A column never changes its meaning; new ones come at the end, and older rows
read as NULL there. Columns of type JSON are text; `advice ->> 'technique'` reads one field.
Times are UTC."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `unit` is empty where there is none."""

    name: str
    type: pa.DataType
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table: its files lie under the folder of its name."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """Two rows that agree in these are one row."""
    marks: tuple[str, ...]
    """Columns that together only a file of this table has."""
    texts: tuple[tuple[str, str], ...] = ()
    """Columns of long texts, each with the one of its id in `texts`."""

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(c.name, c.type) for c in self.columns])


PAIR_COLUMNS = (
    Column("run_id", TEXT, "", "Hash of all that a campaign depends on; the same id resumes"),
    Column("operator", TEXT, "", "Name of the operator"),
    Column("operator_hash", TEXT, "", "Hash of the operator's source"),
    Column("device", TEXT, "", "Hardware that the row names"),
    Column("contract", TEXT, "", "Precision / library / shape policy: strict/flagged/fixed"),
    Column("lineage", TEXT, "", "One letter for each first candidate"),
    Column("step", INTEGER, "", "Counts the steps of a pair from 0"),
)

TEXTS = Table(
    name="texts",
    meaning="One row a long text of compacted rows: a source, a prompt, a reply, a log.",
    key=("text_id",),
    marks=("text",),
    columns=(
        Column("text_id", TEXT, "", "Hash of the text; other rows refer to it"),
        Column("schema_version", INTEGER, "", "Version of these columns when the row was written"),
        Column("text", TEXT, "", "The text itself"),
    ),
)

ITERATIONS = Table(
    name="iterations",
    meaning="One row a step: what was tried, by whom, what came of it.",
    key=("iteration_id",),
    marks=("run_id", "device", "verdict", "record"),
    texts=(("source", "source_id"),),
    columns=(
        Column("iteration_id", TEXT, "", "Hash of the whole record"),
        Column("schema_version", INTEGER, "", "Version of these columns when the row was written"),
        *PAIR_COLUMNS,
        Column("epoch", TEXT, "", "Name of the campaign's epoch; a new one starts afresh"),
        Column("suite", TEXT, "", "Suite that the operator comes from"),
        Column("vendor", TEXT, "", "Maker of the device"),
        Column("arch", TEXT, "", "Architecture that was compiled for"),
        Column("mode", TEXT, "", "create, fix, optimise, translate, confirm or admit"),
        Column("candidate_id", TEXT, "", "Hash of language and source; NULL without a source"),
        Column("parent_ids", WORDS, "", "Candidates that this one was made from"),
        Column("reference", TEXT, "", "Foreign kernel that the generator was shown"),
        Column("verdict", TEXT, "", "Verdict on the candidate, or outcome of the pair"),
        Column("reason", TEXT, "", "One sentence why"),
        Column("needs_review", TRUTH, "", "Somebody should look before this is believed"),
        Column(
            "execution", TEXT, "", "hardware, emulated, none, or imported; speeds are hardware only"
        ),
        Column("baseline", TEXT, "", "What the speed-up is over; several, by shape, with ` / `"),
        Column(
            "speedup", REAL, "ratio", "Baseline time / candidate time, geometric mean of shapes"
        ),
        Column("speedup_low", REAL, "ratio", "Lower bound of its 95 % interval"),
        Column("speedup_high", REAL, "ratio", "Upper bound of its 95 % interval"),
        Column("gain_over_parent", REAL, "ratio", "Parent time / candidate time, timed as pairs"),
        Column("techniques", WORDS, "", "Tags that the generator declared"),
        Column("techniques_added", WORDS, "", "Tags that the parent had not"),
        Column("techniques_detected", WORDS, "", "Tags that rules found in the source"),
        Column(
            "agent_kind", TEXT, "", "Generator: offline, llm, command, replay, given or scripted"
        ),
        Column("agent_name", TEXT, "", "Template or generator by name"),
        Column("model", TEXT, "", "Language model of the generator; NULL without one"),
        Column("prompt_hash", TEXT, "", "Hash of the generator's prompt"),
        Column("parse_status", TEXT, "", "What the reply parser said; ok when there is a source"),
        Column("cost_usd", REAL, "USD", "Of the step's LLM calls; 0 without any, NULL if unknown"),
        Column("isolation", TEXT, "", "Rung of the sandbox ladder that held the candidate"),
        Column("language", TEXT, "", "Language of the kernel"),
        Column("source", TEXT, "", "The candidate: a Python module in ModelNew form"),
        Column("parameters", TEXT, "JSON", "Schedule parameters of a template"),
        Column("advice", TEXT, "JSON", "The analyst's advice that this step carried out"),
        Column("predicted_gain", REAL, "ratio", "Time before / after that the advice expected"),
        Column("build_ok", TRUTH, "", "Whether the sources compiled; NULL if not tried"),
        Column("build_seconds", REAL, "s", "Wall time of the build"),
        Column("build_route", TEXT, "", "launcher or one-phase"),
        Column("run_seconds", REAL, "s", "Wall time of checking and timing"),
        Column("library_ops", WORDS, "", "ATen compute operators that the candidate called"),
        Column("authored", TRUTH, "", "Own memory writes reach the output; NULL if not traced"),
        Column("environment", TEXT, "JSON", "Versions and flags that the numbers depend on"),
        Column("record", TEXT, "JSON", "The whole Iteration (data/codec.py); resume reads it"),
        Column("started_at", TIME, "UTC", "Start of the step"),
        Column("ended_at", TIME, "UTC", "End of the step"),
        Column("family", TEXT, "", "Family of the operator: softmax, norm; NULL if unknown"),
        Column("gain_low", REAL, "ratio", "Lower bound of gain_over_parent's 95 % interval"),
        Column("gain_high", REAL, "ratio", "Upper bound of gain_over_parent's 95 % interval"),
        Column("source_id", TEXT, "", "Hash of the source: its text_id in `texts`"),
    ),
)

TIMINGS = Table(
    name="timings",
    meaning="One row a shape of a timed step: paired times against the baseline.",
    key=("iteration_id", "shape"),
    marks=("run_id", "device", "ratio"),
    columns=(
        Column("iteration_id", TEXT, "", "Row of `iterations` that it belongs to"),
        Column("schema_version", INTEGER, "", "Version of these columns when the row was written"),
        *PAIR_COLUMNS,
        Column("candidate_id", TEXT, "", "Candidate that was timed"),
        Column("shape", TEXT, "", "Shape by name; full is the official one"),
        Column("baseline", TEXT, "", "Faster one of the baselines at this shape"),
        Column("ratio", REAL, "ratio", "Baseline time / candidate time"),
        Column("low", REAL, "ratio", "Lower bound of its 95 % interval"),
        Column("high", REAL, "ratio", "Upper bound of its 95 % interval"),
        Column("parent_ratio", REAL, "ratio", "Parent time / candidate time, in the same pairs"),
        Column("parent_low", REAL, "ratio", "Lower bound of its 95 % interval"),
        Column("parent_high", REAL, "ratio", "Upper bound of its 95 % interval"),
        Column("candidate_us", REAL, "µs", "Median time; for orientation, compare the ratio"),
        Column("baseline_us", REAL, "µs", "Median time of the baseline"),
        Column("floor_us", REAL, "µs", "Roofline floor; NULL if unknown"),
        Column(
            "null_us",
            REAL,
            "µs",
            "The judge's own cost a call, in both times; 0 where taken off",
        ),
        Column("warm", TRUTH, "", "All input sets together fit the last-level cache"),
        Column("pair_ratios", REALS, "ratio", "One entry a pair of fresh processes"),
        Column("latencies", REALS, "µs", "Raw candidate times, in order"),
        Column("others", TEXT, "JSON", "Median µs of the baselines that lost, by name"),
        Column("allocation", REAL, "ratio", "Further gain from reused memory; ratio is without it"),
    ),
)

LLM_CALLS = Table(
    name="llm_calls",
    meaning="One row a paid request, or one replayed, stored before the reply is judged.",
    key=("call_id",),
    marks=("run_id", "device", "role", "record"),
    texts=(("prompt", "prompt_id"), ("reply", "reply_id"), ("reasoning", "reasoning_id")),
    columns=(
        Column("call_id", TEXT, "", "Hash of the step, the sample and the call"),
        Column("iteration_id", TEXT, "", "Step that used it; NULL until the step is on record"),
        Column("schema_version", INTEGER, "", "Version of these columns when the row was written"),
        *(c for c in PAIR_COLUMNS if c.name != "operator"),
        Column("role", TEXT, "", "generator or analyst"),
        Column("sample", INTEGER, "", "Counts the calls of a step and role from 0"),
        Column("model", TEXT, "", "Model that was asked"),
        Column("prompt_hash", TEXT, "", "Hash of the prompt; a resumed step reuses its reply"),
        Column("prompt", TEXT, "", "What was sent"),
        Column("reply", TEXT, "", "What came back; NULL when nothing did"),
        Column("reasoning", TEXT, "", "The model's reasoning where the provider gives it"),
        Column("finish_reason", TEXT, "", "Why the reply ended, as the provider says"),
        Column("parse_status", TEXT, "", "What the reply parser said"),
        Column("prompt_tokens", INTEGER, "tokens", "NULL if unknown"),
        Column("cached_tokens", INTEGER, "tokens", "Part of the prompt billed as cached"),
        Column("completion_tokens", INTEGER, "tokens", "NULL if unknown"),
        Column("reasoning_tokens", INTEGER, "tokens", "Part of the completion spent on reasoning"),
        Column("usage", TEXT, "JSON", "The provider's usage object, untouched"),
        Column("price", TEXT, "JSON", "USD a token by kind; {} when unknown"),
        Column("cost_usd", REAL, "USD", "NULL when unknown, never 0 for it"),
        Column("attempts", INTEGER, "", "Requests until this answer"),
        Column("seconds", REAL, "s", "Wall time"),
        Column("record", TEXT, "JSON", "The whole LlmCall (data/codec.py); resume reads it"),
        Column("started_at", TIME, "UTC", "Start of the call"),
        Column("prompt_id", TEXT, "", "Hash of the prompt: its text_id in `texts`"),
        Column("reply_id", TEXT, "", "Hash of the reply"),
        Column("reasoning_id", TEXT, "", "Hash of the reasoning"),
    ),
)

TABLES = {t.name: t for t in (ITERATIONS, TIMINGS, LLM_CALLS, TEXTS)}


def generated() -> str:
    """The queries and the columns as Markdown, between the two marks of the page."""
    parts = [
        BEGIN,
        "",
        "## Questions",
        "",
        "Those that come up often are files in `data/queries/`:",
    ]
    parts += ["", "| file | question |", "|---|---|"]
    parts += [f"| `{file.name}` | {_question(file)} |" for file in sorted(QUERIES.glob("*.sql"))]
    parts += ["", "## Columns", "", COLUMNS_NOTE]
    for table in TABLES.values():
        parts += ["", f"### {table.name}", "", table.meaning, ""]
        parts += ["| column | type | unit | meaning |", "|---|---|---|---|"]
        parts += [f"| `{c.name}` | {c.type} | {c.unit} | {c.meaning} |" for c in table.columns]
    return "\n".join([*parts, "", END])


def updated(page: str) -> str:
    """`page` with its generated part made new; ValueError when the marks are missing."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page lacks the line {BEGIN!r} or {END!r}")
    return before + generated() + after


def _question(file: Path) -> str:
    """What the first line of a query says."""
    return file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("--").strip()


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
