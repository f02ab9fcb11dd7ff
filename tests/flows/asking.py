"""Three packages of the ledger in docs/examples by the deployment's flow: yes, no, and no answer.

`python -m tests.flows.asking FOLDER`
"""

import asyncio
import sys
from pathlib import Path
from unittest.mock import patch

from flows.publishing import publish
from tasks import approval

LEDGER = Path(__file__).parents[2] / "docs" / "examples" / "ledger"


async def published(folder: Path) -> None:
    """Prints the name of the package and how its run ended."""
    state = await publish(
        devices=["cpu"],
        kernels=["layer_norm", "mish"],
        folder=str(folder),
        runs=str(LEDGER),
        return_state=True,
    )
    print(folder.name, state.name, flush=True)


async def main(folder: Path) -> None:
    await published(folder / "unwanted")
    await published(folder / "wanted")
    with patch.object(approval, "WAIT_S", 2):
        await published(folder / "forgotten")


if __name__ == "__main__":
    with patch.object(approval, "POLL_S", 1):
        asyncio.run(main(Path(sys.argv[1])))
