"""Reports show how many I/Os clients keep in flight, and warn where this hides the effect of a rule."""

import wire
from wire import Wire


def ask(daemon, depth, times=1):
    """Makes one client have this many reads in flight at once."""
    client = Wire(daemon.connect())
    client.go("d")
    for _ in range(times):
        client.send(b"".join(wire.request(wire.CMD_READ, 4096 * i, 4096, cookie=i) for i in range(depth)))
        for _ in range(depth):
            client.simple_reply(4096)
    client.close()


def test_lanes_that_no_client_fills_are_told(daemon):
    daemon.cli("inject", "d", "-D", "20ms:16", "--name", "wide")
    daemon.cli("inject", "d", "-D", "20ms:4", "--name", "narrow", "--with", "wide")
    ask(daemon, 4)
    rules = {rule["name"]: rule for rule in daemon.rules().values()}
    assert rules["wide"]["depth"]["most"] == 4
    said = " ".join(daemon.cli("list").stdout.split())
    assert "clients offered at most 4 at a time, so no more than 4 of its 16 lanes have an effect" in said
    assert said.count("clients offered") == 1, "four lanes are what was offered"


def test_a_bound_of_the_client_is_told_where_a_delay_has_no_lanes(daemon):
    daemon.cli("inject", "d", "-D", "200ms")
    ask(daemon, 16, times=4)
    disk = daemon.disk()
    assert (disk["depth"]["most"], disk["depth"]["usual"]) == (16, 16)
    spent = {time["depth"]: time["time_ns"] for time in disk["depth_times"]}
    assert max(spent) == 16 and spent[16] >= 4 * 190_000_000
    assert sum(spent.values()) == disk["busy_ns"]
    said = " ".join(daemon.cli("proof", code=None).stdout.split())
    assert "clients offered at most 16 at a time, and 16 for" in said
    assert "most 16" in daemon.cli("status").stdout


def test_a_bound_is_told_for_an_interval_of_its_own(daemon):
    """The depth that a report shows for an interval must not include I/Os that ended before it."""
    daemon.cli("inject", "d", "-D", "20ms")
    ask(daemon, 64)
    report = daemon.start("iostat", "-x", "1", "2")
    since_start = report.stdout.readline() + report.stdout.readline()
    ask(daemon, 8, times=80)
    since_start, interval = (since_start + report.stdout.read()).split("\n\n")[:2]
    assert "clients offered" not in since_start
    assert "d: clients offered at most 8 at a time, and 8 for" in " ".join(interval.split()), interval
    assert report.wait() == 0
    (since_start,) = daemon.json("iostat", "-x")
    assert since_start["depth"]["most"] == 64 and since_start["depth"]["usual"] == 8


def test_what_was_offered_before_a_rule_is_no_evidence_of_it(daemon):
    daemon.cli("inject", "d", "-D", "20ms")
    ask(daemon, 64)
    daemon.cli("clear", "all")
    daemon.cli("inject", "d", "-D", "20ms:8")
    ask(daemon, 2)
    (rule,) = daemon.rules().values()
    assert rule["depth"]["most"] == 2
    assert daemon.disk()["depth"]["most"] == 64
    daemon.cli("update", rule["id"], "-D", "5ms:4")
    ask(daemon, 3)
    (rule,) = daemon.rules().values()
    assert rule["depth"]["most"] == 3
