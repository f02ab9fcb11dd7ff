"""Campaigns of any size on simulated devices."""

from pathlib import Path

from data.records import Contract, Operator, Settings
from tasks.campaign import Campaign, identify, store_campaign
from tasks.crew import Crew
from tests.simulated.machine import device, install

SOURCE = '''"""Operator {n}."""
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + {n}


def get_inputs():
    return [torch.randn(1024)]


def get_init_inputs():
    return []
'''


def campaign(
    runs: Path,
    *,
    pairs: int,
    steps: int,
    api_base: str,
    parallel: int,
    devices: int = 4,
    seed: int = 0,
) -> Campaign:
    """So many pairs over some devices, stored in a ledger that is marked as simulated."""
    install(runs)
    operators = tuple(
        Operator(name=f"op-{n:04d}", source=SOURCE.format(n=n), family=f"family-{n % 7}")
        for n in range(pairs // devices)
    )
    made = identify(
        Campaign(
            run_id="",
            epoch="scale",
            runs=str(runs),
            operators=operators,
            devices=tuple(device(n) for n in range(devices)),
            contract=Contract(),
            settings=Settings(steps=steps - 1, seed=seed),
            crew=Crew(kind="llm", models=("openai/scripted",), api_base=api_base),
            parallel=parallel,
        )
    )
    store_campaign(made)
    return made
