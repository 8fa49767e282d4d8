"""The program that serves the page: to this machine alone, until Ctrl-C."""

import http.client
import signal
import socket
import subprocess
import sys
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from gp4c.cli import app
from gp4c.exceptions import GP4CError

COMMAND = [sys.executable, "-c", "from gp4c.cli import main; main()", "app", "--no-browser"]


@pytest.fixture(scope="module")
def server():
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process, urlsplit(process.stdout.readline().strip())
    process.kill()
    process.communicate()


def get(address, path, **headers):
    with closing(http.client.HTTPConnection(address.hostname, address.port, timeout=60)) as line:
        line.request("GET", path, headers=headers)
        answer = line.getresponse()
        return answer.status, answer.read().decode(), answer.headers


def test_it_is_served_on_this_machine_with_its_token_only(server):
    address = server[1]
    assert address.hostname == "127.0.0.1"
    assert len(address.query) > len("token=") + 30
    status, page, headers = get(address, f"/?{address.query}")
    assert status == 200
    assert "<html lang" in page
    assert address.query.removeprefix("token=") not in page
    outside = socket.gethostbyname_ex(socket.gethostname())[2]
    for host in (host for host in outside if not host.startswith("127.")):
        with socket.socket() as stranger:
            assert stranger.connect_ex((host, address.port)) != 0
    # files of the page come with the cookie, and not without
    cookie = headers["set-cookie"].split(";")[0]
    script = page.split('src="lib/gp4c-app')[1].split('"')[0]
    path = f"/lib/gp4c-app{script}"
    assert get(address, path, Cookie=cookie)[0] == 200
    assert get(address, path)[0] == 403
    assert get(address, "/", Host=f"evil.example:{address.port}", Cookie=cookie)[0] == 403


def test_the_page_names_nobody_else(server):
    _, page, _ = get(server[1], f"/?{server[1].query}")
    assert "://" not in page
    assert 'src="//' not in page


def test_a_port_that_is_taken_is_refused_in_a_line(server):
    done = CliRunner().invoke(app, ["app", "--no-browser", "--port", str(server[1].port)])
    assert done.exit_code == 2
    assert "without --port" in done.output
    assert "Traceback" not in done.output


def test_ctrl_c_ends_it(server):
    process = server[0]
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "Ctrl-C ends it.\n")


def test_the_browser_is_opened_unless_it_is_not_wanted(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("gp4c.app.serving.serve", lambda port, ready: ready(f"at {port}"))
    assert CliRunner().invoke(app, ["app", "--port", "81"]).stdout == "at 81\n"
    assert opened == ["at 81"]
    CliRunner().invoke(app, ["app", "--no-browser"])
    assert opened == ["at 81"]


def test_without_the_extra_the_message_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    from gp4c.app.serving import serve

    with pytest.raises(GP4CError, match=r"install gp4c\[app\]"):
        serve()
