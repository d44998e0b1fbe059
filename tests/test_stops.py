"""A daemon reports that it was stopped, for example because its virtual machine was paused or its container
frozen."""

import contextlib
import json
import pathlib
import re
import signal
import threading
import time

import wire
from conftest import eventually
from scraping import scrape
from wire import Wire

# While clients send requests, a shard wakes up this often, to notice stops.
BEAT_S = 0.02


@contextlib.contextmanager
def stopped(daemon, seconds):
    """Stops the daemon for at least this long, while the test does something else."""
    stat = pathlib.Path(f"/proc/{daemon.pid}/stat")
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "it is stopped")
        over = time.monotonic() + seconds
        yield
        # This sleep only makes the stop last at least that long; the test does not wait for a result with it.
        time.sleep(max(0, over - time.monotonic()))
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def shard(daemon):
    (only,) = daemon.json("status")["shards"]
    return only


def test_a_stop_under_a_client_without_rules_is_counted_as_the_client_met_it(serve):
    daemon = serve("-d", "d=ram,size=64M", "--shards", "1")
    client = Wire(daemon.connect())
    client.go("d")
    met, over = [], threading.Event()

    def ask():
        while not over.is_set():
            before = time.monotonic()
            assert client.in_step()
            met.append(time.monotonic() - before)

    asking = threading.Thread(target=ask)
    asking.start()
    eventually(lambda: len(met) > 100, "the client asks")
    with stopped(daemon, 1):
        pass
    asked = len(met)
    eventually(lambda: len(met) > asked + 10, "the client goes on")
    over.set()
    asking.join()
    longest, now = max(met) * 1e9, shard(daemon)
    least = (1 - BEAT_S) * 1e9
    assert longest >= least
    assert now["loop_gap"]["max_ns"] >= least, "the gap is that of the stop"
    assert now["stops"]["all"]["longest_ns"] >= least and now["stops"]["all"]["count"] >= 1
    assert now["stops"]["recent"]["longest_ns"] >= least
    assert now["load"]["busy_percent"] <= 100
    status = daemon.cli("status").stdout
    assert "the host stopped shard 0: " in status
    assert "every promise about time can hold here" not in status
    assert "in the last minute" in status


def test_reports_name_a_stop_that_no_latency_contains(serve):
    daemon = serve("-d", "d=ram,size=64M", "--shards", "1")
    client = Wire(daemon.connect())
    client.go("d")
    over = threading.Event()

    def ask():
        while not over.is_set():
            assert client.in_step()

    asking = threading.Thread(target=ask)
    asking.start()
    report = daemon.start("iolatency", "--json", "0.1")
    report.stdout.readline()
    # The check's command begins after the first reading, and ends when its input ends.
    check = daemon.start("check", "d.max < 1h", "--", "sh", "-c", "echo begun; cat")
    assert check.stdout.readline() == "begun\n"
    with stopped(daemon, 0.5):
        pass
    eventually(lambda: json.loads(report.stdout.readline())["stopped_ns"] > 0.3e9, "it is told")
    _, observed = check.communicate()
    report.send_signal(signal.SIGINT)
    _, said = report.communicate()
    over.set()
    asking.join()
    assert re.search(r"The host stopped dashpot for 0\.\d+ s: clients waited", said), said
    assert check.returncode == 0
    assert "; the host stopped dashpot for" in " ".join(observed.split()), observed


def test_what_was_due_while_the_daemon_was_stopped_is_told_apart(serve):
    daemon = serve("-d", "d=ram,size=64M", "-r", "-D 2s", "--shards", "1", "--metrics", "tcp:127.0.0.1:0")
    client = Wire(daemon.connect())
    client.go("d")
    client.request(wire.CMD_READ, 0, 512)
    eventually(lambda: daemon.disk()["in_flight"] == 1, "it is held")
    with stopped(daemon, 3):
        pass
    rule = eventually(lambda: daemon.rules()[1]["held"] and daemon.rules()[1], "it ends")
    assert rule["held"] == rule["lateness"]["count"] == rule["stopped"]["count"] == 1
    assert rule["stopped"]["max_ns"] == rule["lateness"]["max_ns"] >= 1e9 - BEAT_S * 1e9
    assert rule["shard_load"]["overloaded_seconds"] == 0, "a stop is not work"
    _, metrics = scrape(daemon)
    assert 'dashpot_rule_stopped_total{disk="d",rule="1",name=""} 1\n' in metrics
    (seconds,) = re.findall(r'^dashpot_shard_stopped_seconds_total{shard="0"} (.*)$', metrics, re.MULTILINE)
    assert float(seconds) >= 3 - BEAT_S


def test_a_daemon_that_was_not_stopped_says_nothing_of_it(serve):
    """A daemon that was not stopped must not report a stop. A busy host stops daemons now and then, so the test starts
    new daemons until one was not stopped.
    """

    def says_nothing():
        daemon = serve("-d", "d=ram,size=64M", "--shards", "1")
        text, stops = daemon.cli("status").stdout, shard(daemon)["stops"]
        daemon.stop()
        if stops["all"]["count"] == 0:
            assert stops["all"] == {"count": 0, "total_ns": 0, "longest_ns": 0} and stops["last_age_ns"] is None
            assert "the host stopped" not in text
        return stops["all"]["count"] == 0

    eventually(says_nothing, "a daemon that was not stopped")


def test_seconds_of_overload_are_those_of_the_rule(serve):
    daemon = serve("-d", "d=ram,size=64M", "-r", "-D 1us --name=first", "--shards", "1")
    load = daemon.start("load", daemon.uri("d"), "--depth", "256", "--connections", "4")
    eventually(lambda: shard(daemon)["load"]["overloaded_seconds"] > 1, "it is overloaded")
    load.send_signal(signal.SIGINT)
    load.communicate()
    eventually(lambda: not shard(daemon)["load"]["overloaded"], "the load is over")
    daemon.cli("inject", "d", "-D", "10ms", "--name", "second")
    first, second = daemon.rules().values()
    assert first["shard_load"]["overloaded_seconds"] >= 1
    assert second["shard_load"]["overloaded_seconds"] == 0
