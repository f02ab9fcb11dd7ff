"""A page in Debian's Chromium, driven through its DevTools protocol."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import connect
from websockets.sync.connection import Connection

PROGRAM = shutil.which("chromium")
DEADLINE_S = 30.0


@dataclass
class Page:
    """One tab. What the page asked for, said and threw is kept as it comes."""

    socket: Connection
    session: str | None = None
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def tell(self, method: str, **given: object) -> dict[str, Any]:
        """The browser's answer to a command; AssertionError when it refuses."""
        number = next(self._numbers)
        said = {"id": number, "method": method, "params": given}
        if self.session:
            said["sessionId"] = self.session
        self.socket.send(json.dumps(said))
        while True:
            heard = json.loads(self.socket.recv(timeout=DEADLINE_S))
            if heard.get("id") == number:
                assert "error" not in heard, heard
                result: dict[str, Any] = heard["result"]
                return result
            self._note(heard)

    def _note(self, heard: dict[str, Any]) -> None:
        given = heard.get("params", {})
        match heard.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"])
            case "Network.webSocketCreated":
                self.requests.append(given["url"])
            case "Log.entryAdded":
                self.complaints.append(f"{given['entry']['level']}: {given['entry']['text']}")
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(given["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(given["args"]))

    def open(self, url: str) -> float:
        """Seconds until the page at `url` has drawn itself."""
        begin = time.perf_counter()
        self.tell("Page.navigate", url=url)
        self.until("document.documentElement?.dataset.drawn === 'yes'")
        return time.perf_counter() - begin

    def run(self, script: str) -> Any:
        """The value of a script, awaited."""
        found = self.tell(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, claim: str) -> None:
        """Waits for a script to be true."""
        end = time.monotonic() + DEADLINE_S
        while not self.run(claim):
            assert time.monotonic() < end, f"never true: {claim}; {self.complaints}"
            time.sleep(0.01)

    def busy_s(self) -> float:
        """Seconds that the page's thread has worked, once `Performance` is enabled."""
        metrics = self.tell("Performance.getMetrics")["metrics"]
        (found,) = (m["value"] for m in metrics if m["name"] == "TaskDuration")
        return float(found)

    def press(self, key: str) -> None:
        """A key such as `Tab`, `Enter` or `ArrowRight`, where the focus is."""
        codes = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowDown": 40}
        given = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self.tell("Input.dispatchKeyEvent", type="keyDown", **given, **text)
        self.tell("Input.dispatchKeyEvent", type="keyUp", **given)

    def sized(self, width: int, height: int = 900) -> None:
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def looks(self, *, dark: bool = False, paper: bool = False) -> None:
        """Which colours the person prefers, and whether it is a print."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", media="print" if paper else "", features=[scheme])

    def picture(self, out: Path, *, whole: bool = True) -> None:
        """A PNG of the window, or of the whole page."""
        shot = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        out.write_bytes(base64.b64decode(shot["data"]))

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.tell("Page.printToPDF", printBackground=True)["data"])


@contextmanager
def chromium() -> Iterator[Page]:
    """An empty tab of a browser of its own."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(prefix="kforge-chromium-") as home:
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        flags += ["--no-first-run", "--disable-background-networking", "--hide-scrollbars"]
        process = subprocess.Popen(
            [PROGRAM, *flags, "--remote-debugging-port=0", f"--user-data-dir={home}"],
            env={**os.environ, "TMPDIR": home},  # it leaves folders behind
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with connect(_address(Path(home)), max_size=None) as socket:
                yield _tab(socket)
                Page(socket=socket).tell("Browser.close")
        finally:
            process.terminate()
            process.wait(timeout=10)


def _address(home: Path) -> str:
    """Where the browser listens."""
    known = home / "DevToolsActivePort"
    end = time.monotonic() + DEADLINE_S
    while not (known.exists() and known.read_text().count("\n") == 1):
        assert time.monotonic() < end, "Chromium does not start"
        time.sleep(0.02)
    port, path = known.read_text().split("\n")
    return f"ws://127.0.0.1:{port}{path}"


def _tab(socket: Connection) -> Page:
    page = Page(socket=socket)
    target = page.tell("Target.createTarget", url="about:blank")["targetId"]
    page.session = page.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Network", "Log", "Runtime"):
        page.tell(f"{domain}.enable")
    return page
