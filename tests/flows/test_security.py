"""The settings that are shipped, on a real server: who may enter, and what leaves."""

import base64
import json
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from tasks import pictures
from tests.agents.test_pictures import profiled
from tests.data.report import browser
from tests.data.samples import confirmed
from tests.flows.shipped import PASSWORD, ROOT, Shipped, shipped
from tests.simulated import servers

pytestmark = [pytest.mark.prefect, pytest.mark.e2e, pytest.mark.timeout(300)]

READS = ("flow_runs", "deployments", "artifacts", "logs", "variables", "block_documents")
PAGES = ("dashboard", "runs", "deployments", "concurrency-limits", "artifacts", "settings")
ASKED = "performance.getEntriesByType('resource').some(r => r.name.includes('/api/'))"
"""Whether a page has come to its own questions."""
CLIENT = "tests"
KEY = "sk-canary-of-the-model"
SECRET = "canary-in-a-block"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shipped]:
    with shipped(tmp_path_factory.mktemp("shipped")) as started:
        yield started


def request(
    server: Shipped, path: str, password: str | None, token: str | None = None
) -> urllib.request.Request:
    """To the API, as a program would make it; with a token against forgery when there is one."""
    made = urllib.request.Request(f"{server.page}/api/{path}")
    if token is not None:
        made.add_header("Prefect-Csrf-Client", CLIENT)
        made.add_header("Prefect-Csrf-Token", token)
    if password is not None:
        known = base64.b64encode(password.encode()).decode()
        made.add_header("Authorization", f"Basic {known}")
    return made


def status(asked: urllib.request.Request, body: object = None) -> int:
    """What the API answers."""
    if body is not None:
        asked.data = json.dumps(body).encode()
        asked.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def token(server: Shipped) -> str:
    """A token against forgery, for who knows the password."""
    with urllib.request.urlopen(request(server, f"csrf-token?client={CLIENT}", PASSWORD)) as said:
        return str(json.load(said)["token"])


def python(server: Shipped, *words: str, **more: str) -> str:
    """What a client with the password prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=server.environment() | more,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_nobody_enters_without_the_password(server: Shipped) -> None:
    """Neither reads nor writes; only whether the server is up is told to all."""
    known = token(server)
    for password in (None, "kforge:guess"):
        for name in READS:
            assert status(request(server, f"{name}/filter", password, known), {}) == 401, name
        assert status(request(server, "flows/", password, known), {"name": "planted"}) == 401
        assert status(request(server, "admin/settings", password)) == 401
        assert status(request(server, f"csrf-token?client={CLIENT}", password)) == 401
    assert status(request(server, "flow_runs/filter", PASSWORD, known), {}) == 200
    assert status(request(server, "health", None)) == 200


def test_a_page_of_somebody_else_cannot_write(server: Shipped) -> None:
    """A browser that knows the password would send it along; the token it does not know."""
    assert status(request(server, "flows/", PASSWORD), {"name": "forged"}) == 403
    assert status(request(server, "flows/", PASSWORD, "guessed"), {"name": "forged"}) == 403
    assert status(request(server, "flows/", PASSWORD, token(server)), {"name": "own"}) == 201


def test_it_listens_on_the_loopback_alone(server: Shipped) -> None:
    """Whoever may write to the API runs code on every worker."""
    for table in ("tcp", "tcp6"):
        lines = Path("/proc/net", table).read_text().splitlines()[1:]
        local = [line.split()[1] for line in lines if line.split()[3] == "0A"]
        ours = [a for a in local if a.endswith(f":{server.port:04X}")]
        assert ours == (["0100007F:" + f"{server.port:04X}"] if table == "tcp" else [])


def test_a_block_is_encrypted_with_a_key_that_is_elsewhere(server: Shipped) -> None:
    """Who copies the database has neither the secret nor the key to it."""
    code = "from prefect.blocks.system import Secret; Secret(value=V).save('canary')"
    python(server, "-c", code.replace("V", repr(SECRET)))
    with sqlite3.connect(server.folder / "prefect.db") as database:
        names = [n for (n,) in database.execute("SELECT name FROM block_document")]
        keys = [k for (k,) in database.execute("SELECT key FROM configuration")]
    database.close()
    assert "canary" in names
    assert "ENCRYPTION_KEY" not in keys
    assert SECRET.encode() not in server.written()


def test_a_campaign_leaves_no_secret_on_the_server(server: Shipped, tmp_path: Path) -> None:
    """Parameters, artifacts, logs and events are read by all; keys stay in the environment."""
    with servers.model(tmp_path / "asked") as endpoint:
        words = ("prefect", str(tmp_path / "runs"), endpoint, "4", "2", "2")
        python(server, "-m", "tests.simulated.controller", *words, OPENAI_API_KEY=KEY)
    held = server.written()
    assert b"op-0000@" in held, "the campaign is there"
    for secret in (KEY, PASSWORD, PASSWORD.partition(":")[2]):
        assert secret.encode() not in held


@pytest.mark.skipif(browser.PROGRAM is None, reason="needs Debian's chromium")
def test_its_pages_ask_nobody_else(server: Shipped) -> None:
    """A real browser on real pages, pictures among them: each request goes to this server."""
    page = pictures.page([confirmed(1, 1.5, profile=profiled())])
    code = f"from prefect.artifacts import create_markdown_artifact as c; print(c({page!r}, 'two'))"
    made = python(server, "-c", code)
    with browser.chromium() as tab:
        entered = f"localStorage.setItem('prefect-password', btoa('{PASSWORD}'))"
        tab.tell("Page.addScriptToEvaluateOnNewDocument", source=entered)
        for path in (*PAGES, f"artifacts/artifact/{made}"):
            tab.tell("Page.navigate", url=f"{server.page}/{path}")
            tab.until(f"location.pathname === '/{path}' && {ASKED}")
        tab.until("[...document.images].filter(i => i.naturalWidth === 1000).length === 2")
        asked = {u for u in tab.requests if not u.startswith(("data:", "blob:", "about:"))}
    assert any("/api/" in url for url in asked)
    assert {urlsplit(url).netloc for url in asked} == {f"127.0.0.1:{server.port}"}
