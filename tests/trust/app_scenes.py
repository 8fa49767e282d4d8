"""The page on screen, ended while a table comes in or a fit runs: what must hold afterwards.

A small client speaks to a real server as a browser does: two tabs, of which one uploads a table
and fits while the other looks on. test_app_signals.py runs a few scenes, campaign.py many.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from websockets.sync.client import ClientConnection, connect

COMMAND = [sys.executable, "-c", "from gp4c.cli import main; main()", "app", "--no-browser"]
#: seconds for the server to start, to answer, and to be gone after a signal
PATIENCE = 120.0
STEPS = ("open", "uploading", "looking", "fitting")


class Server:
    """A server of the page in a process group of its own, with a folder for temporary files."""

    def __init__(self, folder: Path) -> None:
        self.room = folder / "room"
        self.room.mkdir(exist_ok=True)
        environment = {**os.environ, "TMPDIR": str(self.room), "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
            start_new_session=True, env=environment,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = urlsplit(self.process.stdout.readline().strip())

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal to the server alone; its code and what it said."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said

    def workers(self) -> list[int]:
        """Processes of its group that are alive."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:  # gone since
                continue
            if int(fields[2]) == self.process.pid and fields[0] != "Z":
                found.append(int(path.parent.name))
        return found


class Fields(HTMLParser):
    """What the fields of a page hold before anybody has touched them, by their names."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, Any] = {}
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a field, or an option of the one that is open."""
        about = dict(attrs)
        name, classes = about.get("id") or "", about.get("class") or ""
        if tag == "select":
            self._select = name
        elif tag == "option" and self._select:
            if "selected" in about or self._select not in self.values:
                self.values[self._select] = about.get("value", "")
        elif "shiny-input-checkboxgroup" in classes:
            self.values[name] = []
        elif tag == "button" and "action-button" in classes:
            self.values[f"{name}:shiny.action"] = 0
        elif "shiny-html-output" in classes:
            self.values[f".clientdata_output_{name}_hidden"] = False
        elif tag == "input":
            self._take(name, about)

    def _take(self, name: str, about: dict[str, str | None]) -> None:
        """Take a field that is an input."""
        kind, value = about.get("type"), about.get("value") or ""
        if kind == "radio" and "checked" in about:
            self.values[about.get("name") or ""] = value
        elif kind == "checkbox" and name:
            self.values[name] = "checked" in about
        elif kind == "number":
            self.values[f"{name}:shiny.number"] = float(value or 0)
        elif kind in ("text", "range"):
            self.values[name] = value

    def handle_endtag(self, tag: str) -> None:
        """Leave a select."""
        if tag == "select":
            self._select = ""


def first_values(page: str) -> dict[str, Any]:
    """What a browser tells when it opens a page."""
    fields = Fields()
    fields.feed(page)
    return {".clientdata_pixelratio": 1, **fields.values}


class Tab:
    """A tab of the browser: the messages that it sends and gets."""

    def __init__(self, address: SplitResult) -> None:
        self.address = address
        self._open = ExitStack()  # stays open until the process ends
        self.line: ClientConnection = self._open.enter_context(connect(
            f"ws://{address.netloc}/websocket/?{address.query}", max_size=2**26, compression=None
        ))  # fmt: skip
        self.session = ""
        self._tag = 0
        self._send({"method": "init", "data": first_values(self._page())})
        self._until(lambda message: "config" in message)

    def _page(self) -> str:
        """The page as it is served."""
        with closing(http.client.HTTPConnection(self.address.netloc, timeout=PATIENCE)) as line:
            line.request("GET", f"/?{self.address.query}")
            return line.getresponse().read().decode()

    def upload(self, name: str, content: bytes, whole: bool = True) -> None:
        """Send a table as the file field does; or only its first half."""
        about = [{"name": name, "size": len(content), "type": "text/csv"}]
        value = self._called("uploadInit", [about])["value"]
        with closing(http.client.HTTPConnection(self.address.netloc, timeout=PATIENCE)) as line:
            path = f"/{value['uploadUrl']}".replace("//", "/")
            path += ("&" if "?" in path else "?") + self.address.query
            if not whole:
                line.putrequest("POST", path)
                line.putheader("Content-Length", str(len(content)))
                line.endheaders()
                line.send(content[: len(content) // 2])
                return
            line.request("POST", path, content, {"Content-Type": "application/octet-stream"})
            assert line.getresponse().status == 200
        self._called("uploadEnd", [value["jobId"], "file"])

    def fit(self) -> None:
        """Click on Fit."""
        self._send({"method": "update", "data": {"fit:shiny.action": 1}})

    def until_said(self, text: str) -> None:
        """Wait until some message has a text."""
        self._until(lambda message: text in json.dumps(message))

    def close(self) -> None:
        self.line.close()

    def _called(self, method: str, arguments: list[Any]) -> dict[str, Any]:
        self._tag += 1
        self._send({"method": method, "args": arguments, "tag": self._tag})
        tag = self._tag
        answer = self._until(lambda message: message.get("response", {}).get("tag") == tag)
        return answer["response"]

    def _send(self, message: dict[str, Any]) -> None:
        self.line.send(json.dumps(message))

    def _until(self, wanted: Any) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            message = json.loads(self.line.recv(timeout=PATIENCE))
            if wanted(message):
                return message
        raise AssertionError("the page did not answer")


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """A server that is gone afterwards, whatever happens."""
    running = Server(folder)
    try:
        yield running
    finally:
        for worker in {running.process.pid, *running.workers()}:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        running.process.communicate()


def brought_to(step: str, tab: Tab, table: bytes) -> None:
    """Do what a user does until some step."""
    if step == "uploading":
        tab.upload("visits.csv", table, whole=False)
    if step in ("looking", "fitting"):
        tab.upload("visits.csv", table)
    if step == "fitting":
        tab.until_said("looked")
        tab.fit()
        tab.until_said("begin")


def ended(step: str, number: signal.Signals, folder: Path, table: bytes, delay: float = 0.0) -> str:
    """End a server at some step, after a while: the port is free and nobody and nothing is left.

    What SIGKILL leaves in the folder of temporary files is the system's to clean.
    """
    shutil.rmtree(folder / "room", ignore_errors=True)
    before = {path.name for path in folder.iterdir()}
    with server(folder) as running:
        tab, other = Tab(running.address), Tab(running.address)
        brought_to(step, tab, table)
        time.sleep(delay)
        code, said = running.end(number)
        assert "Traceback" not in said, said
        # Ctrl-C is the way to end it; the others end it by themselves
        expected = {signal.SIGINT: (0,), signal.SIGTERM: (0, -15), signal.SIGKILL: (-9,)}
        assert code in expected[number], (code, said)
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", running.address.port))
        end = time.monotonic() + PATIENCE
        while (left := running.workers()) and time.monotonic() < end:
            time.sleep(0.1)
        assert not left, f"{len(left)} processes are left"
        for one in (tab, other):
            one.close()
    assert {path.name for path in folder.iterdir()} - {"room"} == before, "a file was left behind"
    left = [path.name for path in (folder / "room").iterdir() if path.name.startswith("gp4c-app-")]
    if number != signal.SIGKILL:
        assert not left, f"{left} left behind"
    return "ended, nothing left" if not left else "ended, a temporary folder left"


def lost_worker(folder: Path, table: bytes) -> str:
    """Kill the processes that compute during a fit: the page says so, and another tab goes on."""
    with server(folder) as running:
        tab = Tab(running.address)
        brought_to("fitting", tab, table)
        for worker in running.workers():
            command = Path(f"/proc/{worker}/cmdline").read_text()
            if worker != running.process.pid and "spawn_main" in command:
                os.kill(worker, signal.SIGKILL)
        tab.until_said("ended before its time")
        other = Tab(running.address)
        other.upload("visits.csv", table)
        other.until_said("looked")
        code, said = running.end(signal.SIGINT)
        assert code == 0, (code, said)
    return "the other tab went on"
