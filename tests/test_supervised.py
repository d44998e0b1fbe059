"""dashpot as a child of other programs: sockets that they hand over, the notice that dashpot is ready,
tokens, and `dashpot install`."""

import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from conftest import BINARY, HANG_LIMIT, ROOT, eventually, requires, run

TOKEN = "0123456789abcdef-of-ours"


@requires("nbdinfo")
def test_a_client_starts_its_own_server():
    """libnbd starts dashpot, and hands over a socket that it has made. Only the client may print on stdout."""
    said = run("nbdinfo", "--json", "--", "[", BINARY, "serve", "-d", "db=ram,size=64M", "]")
    assert json.loads(said.stdout)["exports"][0]["export-size"] == 64 << 20
    assert (
        run("nbdinfo", "--size", "--", "[", BINARY, "serve", "-d", "db=ram,size=1M", "-r", "-D 1ms", "]").stdout
        == "1048576\n"
    )


@requires("nbdcopy")
def test_two_clients_do_so_at_once(directory):
    image = directory / "image"
    image.write_bytes(os.urandom(1 << 20))
    copies = [
        subprocess.Popen(
            ["nbdcopy", "--", image, "[", BINARY, "serve", "-d", "db=ram,size=1M", "]"], stderr=subprocess.PIPE
        )
        for _each in range(2)
    ]
    for copy in copies:
        said = copy.communicate(timeout=HANG_LIMIT)[1]
        assert (copy.returncode, said) == (0, b"")


def handed(count, what):
    """Runs `dashpot serve` with a descriptor at number 3, and with variables that announce `count`
    descriptors."""
    code = "import os,sys; os.dup2(int(sys.argv[1]), 3); os.environ['LISTEN_PID']=str(os.getpid()); os.execv(sys.argv[2], sys.argv[2:])"
    command = ["/usr/bin/python3", "-c", code, str(what.fileno()), BINARY, "serve", "-d", "db=ram,size=1M"]
    environment = {**os.environ, "LISTEN_FDS": count}
    return subprocess.run(
        command, env=environment, pass_fds=[what.fileno()], capture_output=True, text=True, timeout=HANG_LIMIT
    )


@pytest.mark.parametrize(
    "count, says",
    [
        ("1", "LISTEN_FDS: descriptor 1 of those handed over is no socket that listens"),
        ("70", "LISTEN_FDS=70: this is no number of sockets from 0 to 64"),
        ("x", "LISTEN_FDS=x"),
    ],
)
def test_other_things_are_refused(count, says):
    with open(os.devnull) as nothing:
        refused = handed(count, nothing)
    assert refused.returncode == 1 and says in refused.stderr


def test_a_supervisor_is_told_when_clients_can_connect(directory):
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(str(directory / "notify"))
    told.settimeout(HANG_LIMIT)
    nbd = directory / "nbd.sock"
    command = [BINARY, "serve", "-d", "db=ram,size=1M", "--nbd", f"unix:{nbd}", "--api", "unix:-"]
    environment = {**os.environ, "NOTIFY_SOCKET": str(directory / "notify")}
    served = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        assert told.recv(64) == b"READY=1"
        socket.socket(socket.AF_UNIX).connect(str(nbd))
        served.send_signal(signal.SIGTERM)
        assert told.recv(64) == b"STOPPING=1"
        assert served.wait(HANG_LIMIT) == 0
    finally:
        served.kill()
        served.wait()


def status_of(url, token):
    request = urllib.request.Request(f"{url}/v1/status", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=HANG_LIMIT) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("way", ["file", "environment"])
def test_a_token_can_be_chosen(serve, directory, way, monkeypatch):
    words = ["--api", "tcp:127.0.0.1:0"]
    if way == "file":
        (directory / "token").write_text(TOKEN + "\n")
        words += ["--token-file", directory / "token"]
    else:
        monkeypatch.setenv("DASHPOT_TOKEN", TOKEN)
    daemon = serve("-d", "db=ram,size=1M", *words)
    url = eventually(lambda: re.search(r"^API  (http://127\.0\.0\.1:\d+)$", daemon.output(), re.M)).group(1)
    # The user knows this token, and the output may be in the log of a pipeline.
    assert f"page  {url}/\n" in daemon.output() and TOKEN not in daemon.output()
    assert [status_of(url, token) for token in (TOKEN, "another")] == [200, 401]
    # A client on another host has no file with the token, but may have the variable DASHPOT_TOKEN.
    at = {"DASHPOT_API": url.replace("http://", "tcp:"), "XDG_RUNTIME_DIR": str(directory), "DASHPOT_TOKEN": TOKEN}
    assert "db" in run(BINARY, "status", env=at).stdout
    sys.path.insert(0, str(ROOT / "python/src"))
    dashpot = importlib.import_module("dashpot")
    monkeypatch.setenv("DASHPOT_TOKEN", TOKEN)
    assert dashpot.connect(at["DASHPOT_API"])["db"].name == "db"
    assert "needs its token" in run(BINARY, "status", env={**at, "DASHPOT_TOKEN": ""}, code=1).stderr


@pytest.mark.parametrize(
    "words, env, says",
    [
        (["--api", "tcp:127.0.0.1:0"], {"DASHPOT_TOKEN": "guess"}, "DASHPOT_TOKEN: the token has 5 letters"),
        (["--api", "tcp:127.0.0.1:0", "--token-file", "/nonexistent"], {}, "--token-file /nonexistent: cannot be read"),
        (["--api", "unix:-", "--token-file", "/etc/hostname"], {}, "takes no token"),
    ],
)
def test_a_token_that_would_protect_nothing_is_refused(words, env, says):
    refused = run(BINARY, "serve", "-d", "db=ram,size=1M", "--nbd", "unix:-", *words, env=env, code=1)
    assert says in refused.stderr


def test_the_program_copies_itself(directory):
    run(BINARY, "install", directory / "tools")
    assert os.listdir(directory / "tools") == ["dashpot"]
    said = run(directory / "tools/dashpot", "version").stdout
    assert re.match(r"dashpot \d+\.\d+\.\d+\n(x86_64|aarch64)-linux, (static|dynamic) (glibc|musl)", said)
    refused = run(BINARY, "install", "/proc/nothing", code=1).stderr
    assert "/proc/nothing" in refused and "may write" in refused
