"""The end of I/Os that a rule hangs: they end with their rule, and with what armed it, but not at a `clear` by hand."""

import signal

import pytest
from conftest import BINARY, eventually, run
from test_path import places  # noqa: F401
from timed import Client


@pytest.fixture
def client(daemon):
    return Client(daemon)


@pytest.mark.parametrize("mode", ["floor", "add"])
def test_a_hang_ends_with_its_rule(daemon, client, mode):
    daemon.cli("inject", "d", "--hang", "--for", "300ms", "--mode", mode)
    read = client.read()
    assert client.wait(read).error == 0
    armed = daemon.rules()[1]
    assert armed["state"] == "ended" and (armed["held"], armed["now"]) == (1, 0)
    # The client may have sent its read some time after the rule was armed.
    assert armed["age_ns"] >= 300e6
    assert "rule 1: ended" in daemon.cli("list").stdout


def test_an_update_moves_the_end_of_a_hang(daemon, client):
    daemon.cli("inject", "d", "--hang")
    read = client.read()
    eventually(lambda: daemon.rules()[1]["now"] == 1, "a read that hangs")
    daemon.cli("update", "1", "--hang", "--for", "100ms")
    assert client.wait(read).error == 0


def test_the_end_of_the_command_ends_what_its_rule_hangs(daemon, client):
    command = daemon.start("inject", "d", "--hang", "--", "sh", "-c", "exec cat")
    eventually(lambda: daemon.rules(), "the rule")
    read = client.read()
    eventually(lambda: daemon.rules()[1]["now"] == 1, "a read that hangs")
    command.communicate("")
    assert client.wait(read).error == 0 and not daemon.rules()


def test_the_end_of_a_lease_ends_what_its_rule_hangs(daemon, client):
    command = daemon.start("inject", "d", "--hang", "--", "sh", "-c", "exec cat")
    eventually(lambda: daemon.rules(), "the rule")
    read = client.read()
    eventually(lambda: daemon.rules()[1]["now"] == 1, "a read that hangs")
    command.send_signal(signal.SIGKILL)
    command.wait()
    assert client.wait(read).error == 0


def test_a_clear_by_hand_says_what_it_leaves_held(daemon, client):
    daemon.cli("inject", "d", "--hang", "-T", "read")
    daemon.cli("inject", "d", "-D", "60m", "-T", "write")
    reads = [client.read(), client.read(), client.write()]
    eventually(lambda: sum(rule["now"] for rule in daemon.rules().values()) == 3, "held I/Os")
    cleared = daemon.cli("clear", "1").stdout
    said = "cleared rule 1; 2 I/Os are still held, for ever: 'dashpot clear DISK --release' lets them go"
    assert " ".join(cleared.split()) == said
    assert "cleared rule 2; 1 I/O is still held, until they are due" in daemon.cli("clear", "2").stdout
    assert not any(read.answered for read in reads)
    daemon.cli("clear", "d", "--release")
    assert all(client.wait(read).error == 0 for read in reads)


def test_a_hang_of_a_programs_call_ends_with_its_rule(places):  # noqa: F811
    wal, _ = places
    file = f"of={wal}/f"
    ended = run(
        BINARY,
        "run",
        "-d",
        f"wal=path:{wal}",
        "-r",
        "--hang -T sync --for 300ms",
        "--",
        "dd",
        "if=/dev/zero",
        file,
        "bs=4k",
        "count=1",
        "conv=fsync",
    )
    assert "1+0 records out" in ended.stderr
