"""The API, through plain HTTP: its answers, and its rules of access."""

import json
import os
import re
import socket
import subprocess
import threading

import pytest
from conftest import BINARY, eventually, requires, run
from wire import Wire

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


def test_a_body_that_is_too_large_is_refused_and_the_refusal_arrives(daemon):
    """The daemon refuses a body that is too large. The client sends its whole body before it reads the answer. The
    daemon must not close the connection so early that the refusal is lost.
    """
    body = b'{"rule": "' + b"x" * (3 << 20)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as plain:
        plain.connect(str(daemon.api))
        plain.sendall(b"POST /v1/disks/d/rules HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body))
        plain.sendall(body)
        assert plain.recv(1 << 16).startswith(b"HTTP/1.1 413")


def test_a_name_that_is_no_text_is_refused_as_everything_is(ask):
    status, body = ask("/v1/disks/%ff")
    assert status == 400 and "UTF-8" in json.loads(body)["remedy"]


@pytest.mark.parametrize("path", ["/", "/v1/nothing", "/favicon.ico"])
def test_whoever_looks_around_is_told_what_this_is(ask, path):
    assert "API of dashpot" in ask(path)[1]


@pytest.mark.parametrize(
    "path,body",
    [
        ("/v1/events?limit=10001", None),
        ("/v1/disks/d/suspend", '{"for_ns": 0}'),
    ],
)
def test_what_cannot_be_meant_is_refused(ask, path, body):
    status, said = ask(path, *([*JSON, "-d", body] if body else []))
    assert status == 422 and json.loads(said)["remedy"]


ESCAPES = "\x1b[2J\x1b[31mred\nrule 9 on d: kept"


@pytest.mark.parametrize(
    "request_body",
    [
        {"rule": f"-D 1ms --client '{ESCAPES}'"},
        {"rule": "-D 1ms --client '" + "x" * 2_000 + "'"},
        {"rule": "-D 1ms", "pool": ESCAPES},
        {"rule": "-D 1ms", "pool": "x" * 300},
        {"rule": "-D 1ms", "name": ESCAPES},
        {"rule": "-D 1ms", "name": "x" * 200},
    ],
    ids=["glob", "long glob", "pool", "long pool", "name", "long name"],
)
def test_words_that_are_no_names_are_refused(ask, daemon, request_body):
    status, said = ask("/v1/disks/d/rules", *JSON, "-d", json.dumps(request_body))
    assert status == 422 and json.loads(said)["error"]
    assert daemon.rules() == {}


@pytest.mark.parametrize(
    "words",
    [
        ["inject", ESCAPES, "-D", "1ms"],
        ["clear", ESCAPES],
        ["iolatency", "-d", "\x1b[2Jd", "1", "1"],
        ["serve", "-d", "\x1b[2Jd=ram,size=1M"],
    ],
    ids=lambda words: words[0],
)
def test_nothing_from_outside_moves_the_cursor(daemon, words):
    done = daemon.cli(*words, code=None)
    assert done.returncode != 0
    assert "\x1b" not in done.stdout + done.stderr
    assert not any(line.startswith("rule 9") for line in (done.stdout + done.stderr).splitlines())


def test_a_lab_with_bad_names_moves_no_cursor(directory):
    lab = directory / "lab.toml"
    lab.write_text('[disk."a\\u001b[31m\\nb"]\nstore = "ram"\nsize = "1M"\n')
    said = run(BINARY, "serve", "--nbd", "unix:-", "--api", "unix:-", lab, code=None)
    assert said.returncode != 0 and "\x1b" not in said.stderr and "31m" in said.stderr, said


def resident(daemon):
    """The daemon's resident memory in MiB."""
    status = open(f"/proc/{daemon.pid}/status").read()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


def test_rules_have_a_bound_on_their_lanes(ask, daemon):
    """The total number of lanes of all rules must be bounded, and clearing rules must free their lanes."""
    before = resident(daemon)
    answers = [ask("/v1/disks/d/rules", *JSON, "-d", '{"rule": "-D 0s:65534"}') for _ in range(20)]
    statuses = [status for status, _ in answers]
    assert statuses == [201] * 16 + [409] * 4
    assert "at most 1048576" in json.loads(answers[-1][1])["error"]
    assert resident(daemon) - before < 128
    daemon.cli("clear", "all")
    eventually(lambda: resident(daemon) - before < 32, "the memory is given back")
    assert ask("/v1/disks/d/rules", *JSON, "-d", '{"rule": "-D 0s:65534"}')[0] == 201


def test_clear_wants_a_word(daemon):
    daemon.cli("inject", "d", "-D", "1ms")
    assert "empty" in daemon.cli("clear", "", code=2).stderr
    assert len(daemon.rules()) == 1


# TCP.


def test_strangers_keep_nobody_out(tcp):
    """Many clients without a token connect, send request after request, and never read the answers. The daemon keeps
    only a few of these connections, and still answers.
    """
    strangers = []
    for _ in range(600):
        stranger = socket.create_connection(tuple(tcp.address.split(":")))
        stranger.setblocking(False)
        try:
            stranger.send(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
        except OSError:
            pass  # The daemon has already closed this connection.
        strangers.append(stranger)
    # NBD clients can connect while the strangers are connected.
    clients = [Wire(tcp.connect()) for _ in range(100)]
    for client in clients:
        client.go("d")
        assert client.in_step()
    descriptors = f"/proc/{tcp.pid}/fd"
    eventually(lambda: len(os.listdir(descriptors)) < 300, "few strangers")
    assert curl(f"http://{tcp.address}/v1/disks?token={tcp.token}")[0] == 200
    for stranger in strangers:
        stranger.close()


def test_silent_strangers_make_room_for_one_who_knows_the_token(tcp):
    strangers = [socket.create_connection(tuple(tcp.address.split(":"))) for _ in range(600)]
    assert curl(f"http://{tcp.address}/v1/disks?token={tcp.token}")[0] == 200
    eventually(lambda: len(os.listdir(f"/proc/{tcp.pid}/fd")) < 200, "few strangers")
    for stranger in strangers:
        stranger.close()


def test_tcp_wants_the_token(tcp):
    assert curl(f"http://{tcp.address}/v1/disks")[0] == 401
    assert curl(f"http://{tcp.address}/v1/disks?token=wrong")[0] == 401
    assert curl("-H", "Authorization: Bearer wrong", f"http://{tcp.address}/v1/disks")[0] == 401
    assert curl("-H", f"Authorization: Bearer {tcp.token}", f"http://{tcp.address}/v1/disks")[0] == 200


def test_tcp_health_wants_nothing_and_says_nothing(tcp):
    assert curl(f"http://{tcp.address}/healthz") == (200, "ok\n")


@pytest.mark.parametrize(
    "header",
    [
        "Host: evil.example",
        "Host: evil.example:80",
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://localhost:5173",
        "Origin: https://127.0.0.1",
    ],
)
def test_tcp_refuses_foreign_pages(tcp, header):
    """The daemon must refuse requests that come through DNS rebinding or from other sites, even with the
    token."""
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
    """No other user may connect: the default directory has mode 0700, and the API's socket 0600."""
    assert daemon.api.stat().st_mode & 0o077 == 0


@requires("strace")
def test_a_socket_is_private_from_its_first_moment_on(serve, directory):
    """The API's socket must have its mode from the moment at which it is made, so that it is never open to
    others."""
    trace = directory / "trace"
    daemon = serve("-d", "d=ram,size=1M", under=["strace", "-D", "-o", trace, "-e", "trace=fchmod,bind,chmod,fchmodat"])
    calls = trace.read_text().splitlines()
    (bound,) = [at for at, call in enumerate(calls) if f'"{daemon.api}"' in call]
    socket = re.match(r"bind\((\d+),", calls[bound]).group(1)
    assert calls[bound - 1].startswith(f"fchmod({socket}, 0600)"), calls


# The command line over TCP.


def cli(address, *words, code=0):
    return run(BINARY, *words, code=code, env={"DASHPOT_API": address})


def test_each_daemon_has_its_own_token_file(serve):
    """A second daemon does not remove the first one's file, neither when it starts nor when it ends."""
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
    """The client must send a daemon's token to no other address, although the token's file is readable."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        asking = subprocess.Popen(
            [BINARY, "--api", f"tcp:127.0.0.1:{port}", "status"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        peer, _ = other.accept()
        with peer, peer.makefile("rb") as request:
            head = b"".join(iter(request.readline, b"\r\n"))
    asking.wait()
    assert b"GET /v1/status" in head
    assert tcp.token.encode() not in head and b"uthorization" not in head


@pytest.mark.parametrize("method, path", [("POST", "/v1/nothing"), ("PUT", "/v1/status"), ("DELETE", "/v1/rules/77")])
def test_a_request_with_a_body_gets_its_refusal(daemon, method, path):
    """The client sends the head, and then the body, so the daemon could refuse before it has the body."""
    for _ in range(20):
        plain = socket.socket(socket.AF_UNIX)
        plain.connect(str(daemon.api))
        plain.sendall(f"{method} {path} HTTP/1.1\r\nHost: d\r\nContent-Length: 60000\r\n\r\n".encode())
        for _ in range(6):
            plain.sendall(b"x" * 10_000)
        assert plain.recv(12).startswith(b"HTTP/1.1 40")
        plain.close()


def test_an_answer_without_end_is_not_read_without_end(directory):
    """The address may be that of any program."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{directory}/api")
    listener.listen()

    def flood():
        plain, _ = listener.accept()
        plain.recv(4096)
        try:
            plain.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000000\r\n\r\n")
            while True:
                plain.sendall(bytes(1 << 20))
        except OSError:
            plain.close()

    thread = threading.Thread(target=flood)
    thread.start()
    # The kernel lets the program have 1 GiB of data, and more aborts it.
    words = ["sh", "-c", 'ulimit -d 1048576; exec "$@"', "sh", BINARY, "list", "--api", f"unix:{directory}/api"]
    refused = run(*words, code=1).stderr
    assert "it has more than 256 MiB" in refused
    thread.join()
    listener.close()
