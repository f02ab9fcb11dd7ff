"""The closed vocabulary of metrics: one name, unit and meaning, whoever measured it.

What a vendor calls it stands in `Metric.source` of each value and in `vendors` here.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Merge(StrEnum):
    """How the values of several kernels become one of their candidate."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One word of the vocabulary."""

    name: str
    unit: str
    meaning: str
    merge: Merge = Merge.MAX
    vendors: dict[str, str] = field(default_factory=dict)
    """By tool: the name there; several are divided by a bar, `NAME [UNIT]` needs that unit."""


def _term(name: str, unit: str, meaning: str, merge: Merge = Merge.MAX, **vendors: str) -> Term:
    return Term(name=name, unit=unit, meaning=meaning, merge=merge, vendors=vendors)


SHARE = "share of peak"
_ROOFLINE = (
    _term("time_us", "us", "median time of a call"),
    _term("floor_us", "us", "time that the device needs at its peaks: max(F/P, B/W)"),
    _term("time_over_floor", "ratio", "time over the floor; 1 is the best possible"),
    _term("speedup", "baseline time / candidate time", "paired with the named baseline"),
    _term("achieved_gb_s", "GB/s", "necessary bytes over time"),
    _term("peak_gb_s", "GB/s", "peak of main memory"),
    _term("bandwidth_share", SHARE, "achieved_gb_s over peak_gb_s"),
    _term("achieved_gflop_s", "GFLOP/s", "operations over time"),
    _term("peak_gflop_s", "GFLOP/s", "peak of the arithmetic in float32"),
    _term("compute_share", SHARE, "achieved_gflop_s over peak_gflop_s"),
    _term("arithmetic_intensity", "flop/byte", "operations over necessary bytes"),
    _term("machine_balance", "flop/byte", "peak_gflop_s over peak_gb_s"),
    _term("null_us", "us", "the judge's own cost of a call"),
    _term("null_share", "share of time", "null_us over time_us"),
    _term("threads", "count", "threads of the processor, multiprocessors of a device"),
    _term("moved_mib", "MiB", "necessary bytes of a call"),
    _term("cache_mib", "MiB", "last-level cache"),
)
_STATIC = (
    _term("loops_vectorised", "count", "loops that became SIMD code", Merge.SUM),
    _term("loops_missed", "count", "loops that did not become SIMD code", Merge.SUM),
    _term(
        "registers_per_thread",
        "count",
        "vector registers that a thread holds",
        ncu="Registers Per Thread|launch__registers_per_thread",
    ),
    _term("spill_load_bytes", "byte", "code bytes reloaded from spilled registers", Merge.SUM),
    _term(
        "spill_store_bytes", "byte", "code bytes of registers stored for want of room", Merge.SUM
    ),
    _term("stack_bytes", "byte", "local memory of a thread"),
    _term("scalar_registers", "count", "registers that the threads of a sub-group share"),
    _term("spilled_registers", "count", "vector registers of a thread that did not fit"),
    _term("sub_groups_per_scheduler", "count", "sub-groups that fit at a time", Merge.MIN),
    _term("spill_thread_bytes", "byte", "memory of a thread for spilled registers"),
    _term("subgroup_width", "count", "threads that run in step", Merge.MIN),
    _term("scalar_registers", "count", "registers that the threads of a sub-group share"),
    _term("spilled_registers", "count", "vector registers of a thread that did not fit"),
    _term("sub_groups_per_scheduler", "count", "sub-groups that fit at a time", Merge.MIN),
    _term(
        "shared_bytes",
        "byte",
        "static memory that a work group shares",
        ncu="Static Shared Memory Per Block|launch__shared_mem_per_block_static",
    ),
    _term(
        "theoretical_occupancy",
        SHARE,
        "threads that fit on a unit over the most that it holds",
        Merge.MIN,
        ncu="Theoretical Occupancy|sm__maximum_warps_per_active_cycle_pct",
    ),
    _term("barriers", "count", "hardware barriers used"),
)
_COUNTED = (
    _term(
        "kernel_us",
        "us",
        "time of the kernel under the profiler, not comparable with a timing",
        ncu="Duration|gpu__time_duration.sum",
    ),
    _term("dram_bytes", "byte", "bytes to and from device memory", Merge.SUM),
    _term(
        "dram_gb_s",
        "GB/s",
        "rate of device memory",
        ncu="Memory Throughput [byte/s]|Memory Throughput [byte/second]|Memory Throughput"
        " [Gbyte/s]|Memory Throughput [Gbyte/second]|Memory Throughput [Tbyte/s]|Memory Throughput"
        " [Tbyte/second]|dram__bytes.sum.per_second",
    ),
    _term(
        "dram_share",
        SHARE,
        "rate of device memory over its peak",
        ncu="DRAM Throughput|gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    _term(
        "memory_share",
        SHARE,
        "the busiest part of caches, shared and device memory",
        ncu="Memory Throughput [%]"
        "|gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    _term(
        "unit_share",
        SHARE,
        "the busiest part of the multiprocessors",
        ncu="Compute (SM) Throughput|sm__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    _term("sm_busy", SHARE, "the busiest pipeline while a unit is active", ncu="SM Busy"),
    _term(
        "issue_share",
        SHARE,
        "cycles in which a scheduler issues",
        ncu="Issue Slots Busy|smsp__issue_active.avg.pct_of_peak_sustained_active",
    ),
    _term(
        "matrix_share",
        SHARE,
        "cycles in which the matrix units work",
        ncu="sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
    _term("ipc", "instructions/cycle", "of an active unit", ncu="Executed Ipc Active"),
    _term("l1_hit_rate", "share", "sectors", ncu="L1/TEX Hit Rate|l1tex__t_sector_hit_rate.pct"),
    _term("l2_hit_rate", "share", "sectors", ncu="L2 Hit Rate|lts__t_sector_hit_rate.pct"),
    _term(
        "achieved_occupancy",
        SHARE,
        "active threads over the most that a unit holds",
        Merge.MIN,
        ncu="Achieved Occupancy|sm__warps_active.avg.pct_of_peak_sustained_active",
    ),
    _term("warps_per_unit", "count", "sub-groups on a unit at a time"),
    _term(
        "eligible_warps",
        "count",
        "sub-groups a scheduler and cycle that could issue",
        ncu="Eligible Warps Per Scheduler|smsp__warps_eligible.avg.per_cycle_active",
    ),
    _term("group_threads", "count", "threads of a group", ncu="Block Size|launch__block_size"),
    _term("groups", "count", "groups of the launch", ncu="Grid Size|launch__grid_size"),
    _term(
        "waves",
        "count",
        "launch over what fits on the device at a time",
        ncu="Waves Per SM|launch__waves_per_multiprocessor",
    ),
    _term(
        "dynamic_shared_bytes",
        "byte",
        "memory of a group asked for at launch",
        ncu="Dynamic Shared Memory Per Block|launch__shared_mem_per_block_dynamic",
    ),
    _term(
        "spill_requests",
        "count",
        "requests to memory caused by spilled registers",
        Merge.SUM,
        ncu="Local Memory Spilling Requests|derived__local_spilling_requests",
    ),
    *(
        _term(
            f"limit_{what}",
            "groups",
            f"groups on a unit that {what} would allow alone",
            Merge.MIN,
            ncu=f"Block Limit {name}|launch__occupancy_limit_{counter}",
        )
        for what, name, counter in (
            ("registers", "Registers", "registers"),
            ("shared", "Shared Mem", "shared_mem"),
            ("threads", "Warps", "warps"),
            ("groups", "SM", "blocks"),
        )
    ),
)
_STALLS = (
    *("barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle"),
    *("long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction"),
    *("not_selected", "short_scoreboard", "sleeping", "tex_throttle", "wait"),
)
"""Reasons as NVIDIA names them; long_scoreboard waits for device memory, short for shared."""
_WAITS = tuple(
    _term(
        f"stall_{reason}",
        "cycles/instruction",
        f"cycles a sub-group waits for each instruction: {reason.replace('_', ' ')}",
        ncu=f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",
    )
    for reason in _STALLS
)

ROOFLINE: dict[str, Term] = {t.name: t for t in _ROOFLINE}
METRICS: dict[str, Term] = {t.name: t for t in (*_ROOFLINE, *_STATIC, *_COUNTED, *_WAITS)}
