"""Where a daemon listens for HTTP, where it does not, and what it says then."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import stat
import subprocess

import httpx
import pytest

from tests.acceptance.kit import sentence, wait_for
from tests.acceptance.watching import begin, dispose, watching
from tests.conftest import PrivateHome
from tests.integration.api_served import serving
from tests.perdure_cli import Perdure
from tests.tmux_server import PATIENCE


def test_a_port_in_use_is_said_before_anything_is_begun(perdure: Perdure, private_home: PrivateHome) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = perdure("up", "--port", port)
        assert ran.code == 1
        assert (f"Port {port}" in sentence(ran), "--port" in ran.err, "--no-api" in ran.err) == (True, True, True)
        assert not os.path.exists(os.path.join(private_home.state, "perdure.db"))
        # Where it is only wished for, the panes are watched all the same.
        with watching(perdure, "--port", port, "--api-optional") as watcher:
            assert f"Port {port}" in watcher.log
            refused = perdure("open", "--print")
            assert (refused.code, "--no-api" in sentence(refused)) == (3, True)


def test_a_second_daemon_is_refused_for_being_one(perdure: Perdure, private_home: PrivateHome) -> None:
    with serving(perdure, private_home.state) as api:
        ran = perdure("up", "--port", str(api.address[1]))
        assert (ran.code, "already watches" in sentence(ran)) == (6, True)


def test_two_daemons_of_two_state_directories_do_not_disturb_each_other(
    perdure: Perdure, private_home: PrivateHome
) -> None:
    other = os.path.join(private_home.root, "other")
    with serving(perdure, private_home.state) as one:
        second = begin(perdure, "--port", "0", env={"PERDURE_STATE_DIR": other, "TMUX_TMPDIR": private_home.home})
        try:
            link = perdure.ok("open", "--print", env={"PERDURE_STATE_DIR": other}).out.strip()
            with one.browser() as browser:
                assert browser.get(link).status_code == 303
                # A browser shares its cookies between ports: both are still logged in.
                assert len(browser.cookies) == 2
                assert browser.get("/api/me").status_code == 200
                del browser.headers["origin"]
                assert browser.get(f"{link.partition('/login')[0]}/api/me").status_code == 200
            with one.client() as client:
                refused = client.get(f"{link.partition('/login')[0]}/api/me")
                assert refused.status_code == 401
            assert second.end() == 0
        finally:
            dispose(second)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_nobody_listens_beyond_this_machine_by_accident(perdure: Perdure, host: str) -> None:
    ran = perdure("up", "--host", host, "--port", "0")
    assert (ran.code, "--insecure-bind" in sentence(ran)) == (6, True)


def test_who_says_so_may_be_reached_without_tls(perdure: Perdure, private_home: PrivateHome) -> None:
    with serving(perdure, private_home.state, "--host", "0.0.0.0", "--port", "0", "--insecure-bind") as api:
        assert api.url.startswith("http://localhost:")
        with api.client() as client:
            assert client.get("/api/me").status_code == 200
            assert client.get("/api/me", headers={"host": "elsewhere.example"}).status_code == 403


def test_with_a_certificate_it_is_https(perdure: Perdure, private_home: PrivateHome) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate, and is not there")
    cert, key = (os.path.join(private_home.home, name) for name in ("cert.pem", "key.pem"))
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -days 2 -nodes -subj /CN=localhost".split()
    names = ("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    subprocess.run(["openssl", *words, *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    with watching(perdure, "--host", "0.0.0.0", "--port", "0", "--tls-cert", cert, "--tls-key", key):
        link = perdure.ok("open", "--print").out.strip()
        assert link.startswith("https://localhost:")
        with httpx.Client(verify=ssl.create_default_context(cafile=cert), timeout=PATIENCE) as client:
            came = client.get(link)
            assert (came.status_code, "Secure" in came.headers["set-cookie"]) == (303, True)
            assert client.get(f"{link.partition('/login')[0]}/api/me").status_code == 200
    wrong = perdure("up", "--port", "0", "--tls-cert", key, "--tls-key", cert)
    assert (wrong.code, "cannot be used" in sentence(wrong)) == (2, True)
    half = perdure("up", "--tls-cert", cert)
    assert (half.code, "together" in sentence(half)) == (2, True)


def test_a_unix_socket_is_ones_own_and_needs_a_token_too(perdure: Perdure, private_home: PrivateHome) -> None:
    path = os.path.join(private_home.home, "http.sock")
    with watching(perdure, "--unix-socket", path):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        transport = httpx.HTTPTransport(uds=path)
        with httpx.Client(transport=transport, base_url="http://localhost", timeout=PATIENCE) as client:
            assert client.get("/health").status_code == 200
            assert client.get("/api/me").status_code == 401
            with open(os.path.join(private_home.state, "api.token"), encoding="ascii") as file:
                client.headers["authorization"] = f"Bearer {file.read().strip()}"
            assert client.get("/api/me").json()["scope"] == "write"
        refused = perdure("open", "--print")
        assert (refused.code, "No browser" in sentence(refused)) == (3, True)
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    ("args", "env", "said"),
    [
        (["--port", "70000"], {}, "port"),
        (["--port", "x"], {}, "port"),
        (["--host", "no.such.host.invalid"], {}, "no address"),
        (["--unix-socket", "/tmp/x", "--port", "1"], {}, "place"),
        (["--no-api", "--port", "0"], {}, "--no-api"),
        (["--no-api", "--insecure-bind"], {}, "--no-api"),
        ([], {"PERDURE_PORT": "many"}, "PERDURE_PORT"),
    ],
)
def test_what_makes_no_sense_is_said(perdure: Perdure, args: list[str], env: dict[str, str], said: str) -> None:
    ran = perdure("up", *args, env=env)
    assert (ran.code, said in sentence(ran)) == (2, True), ran.err


def test_nobody_is_asked_over_http_who_was_told_so(perdure: Perdure) -> None:
    with watching(perdure, "--no-api"):
        assert perdure("open").code == 3
    assert perdure("open").code == 1


def test_on_a_terminal_it_prints_a_link_that_logs_in(perdure: Perdure, private_home: PrivateHome) -> None:
    """Elsewhere only where it is: what goes to a journal is read by others, too."""
    main, side = os.openpty()
    process = subprocess.Popen(perdure.argv("up", "--port", "0"), stdout=side, stderr=side, stdin=subprocess.DEVNULL)
    os.close(side)
    try:
        shown = b""
        while b"makes another" not in shown:
            shown += os.read(main, 4096)
        link = next(word for word in shown.decode().split() if word.startswith("http://"))
        with httpx.Client(timeout=PATIENCE) as client:
            assert client.get(link).status_code == 303
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0
        os.close(main)
    assert "once=" not in said_at_the_beginning(perdure, private_home, "Dashboard", "--port", "0")


def test_no_browser_is_promised_anything_at_a_unix_socket(perdure: Perdure, private_home: PrivateHome) -> None:
    path = os.path.join(private_home.home, "http.sock")
    said = said_at_the_beginning(perdure, private_home, f"unix:{path}", "--unix-socket", path)
    assert ("perdure open" in said, "Dashboard" in said) == (False, False)


def said_at_the_beginning(perdure: Perdure, private_home: PrivateHome, awaited: str, *args: str) -> str:
    """Return what a daemon says on standard output that is no terminal, once it has said what is awaited."""
    log = os.path.join(private_home.home, "out.txt")
    with open(log, "wb") as out:
        process = subprocess.Popen(perdure.argv("up", *args), stdout=out, stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: awaited in read(log), "the address")
        return read(log)
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_a_browser_is_opened_where_somebody_can_see_it(perdure: Perdure, private_home: PrivateHome) -> None:
    folder = os.path.join(private_home.home, "bin")
    os.mkdir(folder)
    opened = os.path.join(private_home.home, "opened")
    with open(os.path.join(folder, "xdg-open"), "w") as file:
        file.write(f'#!/bin/sh\necho "$1" > {opened}\n')
    os.chmod(file.name, 0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "DISPLAY": ":0"}
    with serving(perdure, private_home.state) as api:
        said = perdure.ok("open", env=env).out
        assert (api.url in said, "once=" in said) == (True, False)
        wait_for(lambda: read(opened).endswith("\n"), "the address")
        with api.client("") as client:
            assert client.get(read(opened).strip()).status_code == 303
        alone = perdure("open")
        assert (alone.code, "once=" in alone.out, "ssh -L" in alone.err) == (0, True, True)


def read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def test_panes_are_watched_on_when_nobody_can_be_asked_over_http_any_more(
    perdure: Perdure, private_home: PrivateHome
) -> None:
    """What goes wrong there, even when it is begun, costs only that."""
    folder = os.path.join(private_home.home, "broken")
    os.mkdir(folder)
    with open(os.path.join(folder, "uvicorn.py"), "w") as file:
        file.write("raise ZeroDivisionError('broken')\n")
    with watching(perdure, "--port", "0", env={"PYTHONPATH": folder}) as watcher:
        wait_for(lambda: "ZeroDivisionError" in watcher.log, "what went wrong")
        refused = perdure("open", "--print")
        assert (refused.code, "not asked over HTTP" in sentence(refused)) == (3, True)
        assert watcher.process.poll() is None
