"""A language model whose reply follows from the prompt alone, behind a real HTTP endpoint.

`python -m tests.simulated.model PORT LOG` serves until it is ended, and appends the hash of each
prompt that it was asked to LOG: a prompt that stands there twice was paid twice.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from data.records import digest
from tests.agents.scripted_server import MARKERS, completion

MODULE = """A kernel.

```python
import torch
from torch import nn
from kforge_launch import kernels

K = kernels(r'''extern "C" void k(const float* x, float* y, long n) {{
    /* {mark} speed {speed:.4f} */
}}''', "cpp")

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.k(args=(x, y, x.numel()))
        return y
```
"""
ADVICE = {
    "bottleneck": "memory",
    "evidence": [{"metric": "time_us", "value": 1.0}],
    "change": "use wider loads",
    "technique": "vectorize",
    "expected_gain": 1.1,
    "confidence": 0.5,
}


def kernel(asked: str, prompt: str) -> str:
    """A module that is 5 % faster than the fastest one in the prompt."""
    shown = [float(s) for s in re.findall(r"speed (\d+\.\d+) \*/", prompt)]
    speed = 1.05 * max(shown, default=1.0)
    return MODULE.format(mark=asked, speed=speed)


class Handler(BaseHTTPRequestHandler):
    """Answers chat completions; the log file is the class's `log`."""

    protocol_version = "HTTP/1.1"
    log: Path

    def log_message(self, *_: object) -> None:
        """Silent: stderr belongs to the test."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = digest(json.dumps(body["messages"]))
        with self.log.open("a") as file:
            file.write(f"{asked}\n")
        first = str(body["messages"][0]["content"])
        analyst = MARKERS["analyst"] in first
        text = json.dumps(ADVICE) if analyst else kernel(asked, json.dumps(body["messages"]))
        answer = json.dumps(completion(text, str(body.get("model")))).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def main(port: int, log: Path) -> None:
    """Serves on the loopback until it is ended."""
    Handler.log = log
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
