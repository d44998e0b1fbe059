"""The API, through plain HTTP: what it answers, and to whom it does not."""

import json
import re
import socket
import subprocess

import pytest

from conftest import BINARY, eventually, requires, run

pytestmark = requires("curl")

JSON = ["-H", "Content-Type: application/json"]


def curl(*words):
    """The status and the body of an answer."""
    text = run("curl", "--silent", "--show-error", "--write-out", "\n%{http_code}", *words).stdout
    body, _, status = text.rpartition("\n")
    return int(status), body


@pytest.fixture
def ask(daemon):
    return lambda path, *words: curl("--unix-socket", daemon.api, *words, f"http://localhost{path}")


@pytest.fixture
def tcp(serve):
    """A daemon with its API on TCP: its address, and its token."""
    daemon = serve("-d", "d=ram,size=64M", "--api", "tcp:127.0.0.1:0")
    found = eventually(lambda: re.search(r"http://(127\.0\.0\.1:\d+)/\S*token=([\w-]+)", daemon.output()))
    daemon.address, daemon.token = found.groups()
    return daemon


def test_healthz_says_nothing_more(ask):
    assert ask("/healthz") == (200, "ok\n")


def test_an_unknown_path(ask):
    status, body = ask("/v1/nothing")
    assert status == 404
    assert json.loads(body)["error"]


def test_a_method_that_is_not(ask):
    assert ask("/v1/disks", "-X", "DELETE")[0] == 405


def test_rules_are_made_changed_and_removed(ask, daemon):
    status, body = ask("/v1/disks/d/rules", *JSON, "-d", '{"rule": "-D 10ms:1"}')
    assert status == 201, body
    assert set(daemon.rules()) == {1}
    status, body = ask("/v1/rules/1", *JSON, "-X", "PATCH", "-d", '{"rule": "-D 20ms:2"}')
    assert status == 200, body
    assert "20ms:2" in daemon.rules()[1]["rule"]
    assert ask("/v1/rules/1", "-X", "DELETE")[0] in (200, 204)
    assert daemon.rules() == {}


BAD_BODIES = {
    "no JSON": "{",
    "another type": "[]",
    "a missing field": "{}",
    "an unknown field": '{"rule": "-D 1ms", "rul": 1}',
    "a rule without a unit": '{"rule": "-D 10"}',
}


@pytest.mark.parametrize("case", BAD_BODIES)
def test_a_body_that_makes_no_sense(ask, daemon, case):
    status, body = ask("/v1/disks/d/rules", *JSON, "-d", BAD_BODIES[case])
    assert status in (400, 422)
    assert json.loads(body)["error"]
    assert daemon.rules() == {}


def test_an_unknown_disk(ask):
    status, body = ask("/v1/disks/e/rules", *JSON, "-d", '{"rule": "-D 1ms"}')
    assert status == 404 and "e" in json.loads(body)["error"]


def test_a_body_without_end(ask, daemon, directory):
    large = directory / "large"
    large.write_bytes(b"[" * (16 << 20))
    status, _body = ask("/v1/disks/d/rules", *JSON, "--data-binary", f"@{large}")
    assert status in (400, 413)
    assert daemon.json("status")


# TCP.

def test_tcp_wants_the_token(tcp):
    assert curl(f"http://{tcp.address}/v1/disks")[0] == 401
    assert curl(f"http://{tcp.address}/v1/disks?token=wrong")[0] == 401
    assert curl("-H", "Authorization: Bearer wrong", f"http://{tcp.address}/v1/disks")[0] == 401
    assert curl("-H", f"Authorization: Bearer {tcp.token}", f"http://{tcp.address}/v1/disks")[0] == 200


def test_tcp_health_wants_nothing_and_says_nothing(tcp):
    assert curl(f"http://{tcp.address}/healthz") == (200, "ok\n")


@pytest.mark.parametrize("header", [
    "Host: evil.example", "Host: evil.example:80", "Origin: http://evil.example", "Origin: null",
])
def test_tcp_refuses_foreign_pages(tcp, header):
    """Against DNS rebinding and cross-site requests, even with the token."""
    status, body = curl("-H", header, "-H", f"Authorization: Bearer {tcp.token}", f"http://{tcp.address}/v1/disks")
    assert status == 403
    assert "--allow-host" in body or "Origin" in header


def test_a_host_that_is_allowed_by_name(serve):
    daemon = serve("-d", "d=ram,size=64M", "--api", "tcp:127.0.0.1:0", "--allow-host", "dashpot")
    found = eventually(lambda: re.search(r"http://(127\.0\.0\.1:\d+)/\S*token=([\w-]+)", daemon.output()))
    address, token = found.groups()
    status, _ = curl("-H", "Host: dashpot", "-H", f"Authorization: Bearer {token}", f"http://{address}/v1/disks")
    assert status == 200


def test_the_token_changes_with_each_daemon(serve):
    tokens = set()
    for _ in range(2):
        daemon = serve("-d", "d=ram,size=1M", "--api", "tcp:127.0.0.1:0")
        tokens.add(eventually(lambda: re.search(r"token=([\w-]+)", daemon.output()))[1])
        daemon.stop()
    assert len(tokens) == 2 and all(len(token) >= 22 for token in tokens)


def test_sockets_are_private(daemon):
    """Nobody else may connect: the default directory is 0700, and the API's socket is 0600."""
    assert daemon.api.stat().st_mode & 0o077 == 0


@requires("strace")
def test_a_socket_is_private_from_its_first_moment_on(serve, directory):
    """It is made so: it is not open to others until somebody has mended that."""
    trace = directory / "trace"
    daemon = serve("-d", "d=ram,size=1M", under=["strace", "-D", "-o", trace, "-e", "trace=umask,bind,chmod,fchmodat"])
    calls = [call for call in trace.read_text().splitlines() if "umask" in call or str(daemon.api) in call]
    assert [call.split("(")[0] for call in calls] == ["umask", "bind", "umask"], calls
    assert calls[0].startswith("umask(077)")


# The command line over TCP.

def cli(address, *words, code=0):
    return run(BINARY, *words, code=code, env={"DASHPOT_API": address})


def test_each_daemon_has_its_own_token_file(serve):
    """A second daemon takes the first one's away neither when it starts nor when it ends."""
    first, second = (serve("-d", f"{name}=ram,size=1M", "--api", "tcp:127.0.0.1:0") for name in "ab")
    for daemon, disk in [(first, "a"), (second, "b")]:
        api = json.loads(daemon.ready.read_text())["api"]
        daemon.tcp = "tcp:" + re.search(r"http://([^/]+)/", api)[1]
        assert [disk["name"] for disk in json.loads(cli(daemon.tcp, "status", "--json").stdout)["disks"]] == [disk]
    second.stop()
    cli(first.tcp, "status")


def test_the_printed_address_is_taken_as_it_is(tcp):
    api = f"http://{tcp.address}/?token={tcp.token}"
    cli(api, "status")
    run(BINARY, "--api", api, "status")
    assert "token" in cli(api.replace(tcp.token, "wrong"), "status", code=1).stderr
    assert "token" in cli(api, "serve", "-d", "e=ram,size=1M", "--nbd", "unix:-", code=1).stderr


def test_a_token_is_sent_to_nobody_else(tcp):
    """Whoever else is asked learns nothing, though the token's file can be read."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        asking = subprocess.Popen(
            [BINARY, "--api", f"tcp:127.0.0.1:{port}", "status"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        peer, _ = other.accept()
        with peer, peer.makefile("rb") as request:
            head = b"".join(iter(request.readline, b"\r\n"))
    asking.wait()
    assert b"GET /v1/status" in head
    assert tcp.token.encode() not in head and b"uthorization" not in head
