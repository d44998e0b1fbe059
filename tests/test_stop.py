"""`dashpot stop`, and the message of a daemon that finds another one at its sockets."""

import json
import re

import pytest
from conftest import BINARY, eventually, run


def test_it_ends_the_daemon_and_tells_which(serve):
    daemon = serve("-d", "a=ram,size=1M", "-d", "b=ram,size=1M")
    said = daemon.cli("stop").stdout
    assert said == f"stopped process {daemon.pid}, which served a, b\n"
    # The command waits for the end of the process.
    assert daemon.process.poll() == 0, daemon.output()
    assert not daemon.api.exists() and not daemon.nbd.exists()
    again = run(BINARY, "--api", f"unix:{daemon.api}", "stop", code=1)
    assert "nothing was stopped" in again.stderr


def test_over_tcp(serve):
    daemon = serve("-d", "a=ram,size=1M", "--api", "tcp:127.0.0.1:0")
    url = json.loads(daemon.ready.read_text())["api"]
    answer = json.loads(run(BINARY, "--api", url, "stop", "--json").stdout)
    assert answer == {"pid": daemon.pid, "exports": ["a"]}
    assert daemon.process.wait() == 0


def test_run_ends_with_its_command():
    done = run(BINARY, "run", "-d", "a=ram,size=1M", "--", "sh", "-c", f"{BINARY} stop; echo still $?")
    assert done.stdout == "still 1\n" and "end that command" in done.stderr


@pytest.mark.parametrize("own", ["--api", "--nbd"])
def test_the_second_daemon_names_the_first_and_both_sockets(serve, own):
    first = serve("-d", "a=ram,size=1M")
    sockets = {"--api": first.api, "--nbd": first.nbd}
    sockets[own] = first.directory / "own.sock"
    options = [word for option, path in sockets.items() for word in (option, f"unix:{path}")]
    second = run(BINARY, "serve", "-d", "a=ram,size=1M", *options, code=1)
    assert f"(process {first.pid}) listens there already" in second.stderr, second.stderr
    assert "--api unix:PATH --nbd unix:PATH" in second.stderr and " stop)" in second.stderr
    # The remedy works as it is printed.
    if own == "--nbd":
        words = re.search(r"end it \(dashpot (.*?)\)", second.stderr)[1].split()
        run(BINARY, *words)
        eventually(lambda: first.process.poll() == 0, "the end of the first daemon")
