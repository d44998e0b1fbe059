"""If a daemon does not answer, the command line must not wait for ever, and must report the state of the daemon."""

import os
import signal
import socket

import pytest
from conftest import BINARY, eventually, run


@pytest.fixture
def stopped(daemon):
    """A daemon that a signal has stopped. The daemon continues at the end of the test."""
    os.kill(daemon.pid, signal.SIGSTOP)
    yield daemon
    os.kill(daemon.pid, signal.SIGCONT)


COMMANDS = {
    "status": ["status"],
    "status --wait": ["status", "--wait", "1s"],
    "inject": ["inject", "d", "-D", "1ms"],
    "iolatency": ["iolatency", "1", "1"],
    "suspend": ["suspend", "d"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_stopped_daemon_is_named(stopped, command):
    said = stopped.cli(*COMMANDS[command], code=1).stderr
    assert f"process {stopped.pid}) is stopped" in said
    assert f"kill -CONT {stopped.pid}" in said


def test_something_that_never_answers_is_not_called_stopped(directory):
    path = directory / "mute.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as mute:
        mute.bind(str(path))
        mute.listen()
        said = run(BINARY, "--api", f"unix:{path}", "status", "--wait", "1s", code=1).stderr
    assert f"process {os.getpid()}) has not answered for" in said and "busy" in said


def test_a_daemon_that_dies_while_it_is_asked_is_gone(daemon):
    """A suspend that waits for a hanging zio must end when the daemon dies, and not before."""
    daemon.cli("inject", "d", "--hang")
    reading = daemon.start("load", daemon.uri("d"), "--time", "100s", "--depth", "1")
    eventually(lambda: daemon.disk()["in_flight"] == 1)
    waiting = daemon.start("suspend", "d")
    eventually(lambda: daemon.disk()["suspended"])
    daemon.abandon()
    _, said = waiting.communicate()
    assert waiting.returncode == 1 and "is gone" in said, said
    reading.kill()
    reading.communicate()


def test_a_suspend_that_waits_is_not_given_up(daemon):
    """A suspend may wait for longer than other calls, because the daemon answers other calls meanwhile."""
    daemon.cli("inject", "d", "-D", "7s", "--first", "1")
    reading = daemon.start("load", daemon.uri("d"), "--time", "1s", "--depth", "1")
    eventually(lambda: daemon.disk()["in_flight"] == 1)
    said = daemon.cli("suspend", "d").stdout
    assert said == "d is suspended\n"
    daemon.cli("resume", "d")
    reading.communicate()
