"""One candidate by KernelBench's own steps: `python benchmarks/kernelbench_eval.py REF NEW`.

Its `eval_kernel_against_ref` asserts CUDA. With `--checkout DIR` (its repository, installed
dependencies) and a CUDA device that function itself runs; without, the same steps run here on the
CPU: both models with seed 42, build by import, 5 trials with allclose at 1e-4, then 3 warm-up and
100 timed calls of the candidate, and as many of the reference for its excessive-speedup check.
Prints one line of JSON.
"""

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

SEED, TRIALS, WARM_UP, TIMED, TOLERANCE = 42, 5, 3, 100, 1e-4


def by_checkout(checkout: Path, reference: str, candidate: str) -> str:
    """Its own function with the defaults of its scripts."""
    sys.path.insert(0, str(checkout / "src"))
    evaluation = importlib.import_module("kernelbench.eval")
    found = evaluation.eval_kernel_against_ref(
        reference,
        candidate,
        seed_num=SEED,
        num_correct_trials=TRIALS,
        num_perf_trials=TIMED,
        measure_performance=True,
        device=torch.device("cuda:0"),
    )
    if found is None or not found.compiled:
        return "not compiled"
    return "correct" if found.correctness else "incorrect"


def on_the_host(reference: str, candidate: str) -> str:
    """The same steps without a device."""
    names: dict[str, Any] = {}
    exec(reference, names)  # noqa: S102 (what KernelBench does)
    torch.manual_seed(SEED)
    arguments = names["get_init_inputs"]()
    original = names["Model"](*arguments)
    try:
        exec(candidate, names)  # noqa: S102
    except Exception:  # noqa: BLE001
        return "not compiled"
    torch.manual_seed(SEED)
    custom = names["ModelNew"](*arguments)
    with torch.no_grad():
        right = [_agree(original, custom, names["get_inputs"], SEED + k) for k in range(TRIALS)]
        if not all(right):
            return "incorrect"
        for model in (custom, original):
            _time(model, names["get_inputs"]())
    return "correct"


def _agree(original: Any, custom: Any, inputs: Any, seed: int) -> bool:
    torch.manual_seed(seed)
    given = inputs()
    try:
        want, got = original(*given), custom(*given)
    except Exception:  # noqa: BLE001
        return False
    close = want.shape == got.shape
    return close and torch.allclose(want, got, atol=TOLERANCE, rtol=TOLERANCE)


def _time(model: Any, given: list[Any]) -> list[float]:
    for _ in range(WARM_UP):
        model(*given)
    times = []
    for _ in range(TIMED):
        began = time.perf_counter()
        model(*given)
        times.append(time.perf_counter() - began)
    return times


def main() -> None:
    """One candidate, one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference", type=Path)
    parser.add_argument("candidate", type=Path)
    parser.add_argument("--checkout", type=Path)
    asked = parser.parse_args()
    texts = asked.reference.read_text(), asked.candidate.read_text()
    found = by_checkout(asked.checkout, *texts) if asked.checkout else on_the_host(*texts)
    print(json.dumps({"found": found}))


if __name__ == "__main__":
    main()
