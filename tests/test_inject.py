"""Rules, seen from a client: delays, errors and hangs, and the figures of `list`.

No test asserts that a latency is short, because a busy machine makes it long. Tests assert that nothing
finishes early, and that everything is counted.
"""

import errno
import os
import re
import time

import pytest
import wire
from conftest import BINARY, eventually
from timed import Client

MS = 1e-3


@pytest.fixture
def client(daemon):
    return Client(daemon)


def rule(daemon, number=1):
    return daemon.rules()[number]


def never_early(requests, targets):
    """Checks that the k-th answer comes no earlier than the k-th target, counted from the first request."""
    start = min(request.sent for request in requests)
    answers = sorted(request.answered - start for request in requests)
    assert all(answer >= target * MS for answer, target in zip(answers, sorted(targets), strict=True)), answers


# One rule.


@pytest.mark.parametrize(
    "words", [["-D", "20ms"], ["-D", "20ms:1"], ["-D", "20ms~0ms"], ["-D", "20ms", "--mode", "add"]]
)
def test_a_delay_is_never_early(daemon, client, words):
    daemon.cli("inject", "d", *words)
    for issue in (client.read, client.write, client.zero):
        assert client.wait(issue()).latency >= 20 * MS
    counted = rule(daemon)
    assert counted["matched"] == counted["injected"] == counted["held"] == 3


@pytest.mark.parametrize(
    "service, least",
    [
        ("uniform=5ms..9ms", 5),
        ("20ms~5ms", 15),
        ("p50=4ms,p99=30ms", 4),
    ],
)
def test_a_distribution_is_never_below_its_minimum(daemon, client, service, least):
    daemon.cli("inject", "d", "-D", service)
    requests = client.many(200, 32)
    assert min(request.latency for request in requests) >= least * MS
    assert rule(daemon)["held"] == 200


def test_without_lanes_there_is_no_queue(daemon, client):
    """64 requests are held at the same time, so each must take only its own delay."""
    daemon.cli("inject", "d", "-D", "60m")
    requests = [client.read() for _ in range(64)]
    eventually(lambda: rule(daemon)["matched"] == 64)
    assert rule(daemon)["backlog_ns"] == 0
    daemon.cli("clear", "1", "--release")
    client.wait(*requests)


def test_one_lane_serves_one_at_a_time(daemon, client):
    daemon.cli("inject", "d", "-D", "10ms:1")
    requests = [client.read() for _ in range(8)]
    client.wait(*requests)
    never_early(requests, [10 * (i + 1) for i in range(8)])


def test_lanes_belong_to_the_disk_and_not_to_a_connection(daemon):
    daemon.cli("inject", "d", "-D", "10ms:1")
    clients = [Client(daemon) for _ in range(8)]
    requests = [client.read() for client in clients]
    for client, request in zip(clients, requests):
        client.wait(request)
    never_early(requests, [10 * (i + 1) for i in range(8)])


def test_bandwidth_is_shared(daemon):
    daemon.cli("inject", "d", "--bandwidth", "4M")
    clients = [Client(daemon) for _ in range(4)]
    requests = [client.read(0, 256 << 10) for client in clients]
    for client, request in zip(clients, requests):
        client.wait(request)
    never_early(requests, [62.5 * (i + 1) for i in range(4)])


@pytest.mark.parametrize("name", ["EPERM", "EIO", "ENOMEM", "EINVAL", "ENOSPC"])
def test_an_error_is_the_one_asked_for(daemon, client, name):
    daemon.cli("inject", "d", "-e", name, "-T", "write")
    assert client.wait(client.write()).error == getattr(errno, name)
    assert client.wait(client.read()).error == 0
    assert (rule(daemon)["matched"], rule(daemon)["injected"]) == (1, 1)


def test_first_and_every_count_what_matches(daemon, client):
    daemon.cli("inject", "d", "-e", "EIO", "--first", "3")
    daemon.cli("inject", "d", "-e", "ENOSPC", "-T", "write", "--every", "4")
    reads = [client.wait(client.read()).error for _ in range(5)]
    assert reads == [errno.EIO] * 3 + [0] * 2
    writes = [client.wait(client.write()).error for _ in range(8)]
    assert writes == [0, 0, 0, errno.ENOSPC] * 2


def test_skip_every_and_first_combine_and_another_update_keeps_the_count(daemon, client):
    picked = lambda ios: [number for number in ios if client.wait(client.write()).error]
    daemon.cli("inject", "d", "-e", "EIO", "-T", "write", "--skip", "4", "--every", "3", "--first", "3")
    assert picked(range(1, 9)) == [7]
    daemon.cli("update", "1", "-e", "ENOSPC", "-T", "write", "--skip", "4", "--every", "3", "--first", "3")
    assert picked(range(9, 20)) == [10, 13]
    assert rule(daemon)["counted"] == 19
    assert re.search(r"^rule 1: 19 counted since \S+ ago$", daemon.cli("list").stdout, re.M)
    daemon.cli("update", "1", "-e", "EIO", "-T", "write", "--nth", "2")
    assert picked(range(1, 5)) == [2]
    refused = daemon.cli("inject", "d", "-e", "EIO", "--nth", "2", "--every", "3", code=2)
    assert "'--nth <N>' cannot be used with '--every <N>'" in refused.stderr


def test_a_cycle_injects_and_rests(daemon, client):
    daemon.cli("inject", "d", "-e", "EIO", "--cycle", "1h/2h")
    assert (client.wait(client.read()).error, rule(daemon)["state"]) == (errno.EIO, "active")
    daemon.cli("update", "1", "-e", "EIO", "--cycle", "1ms/1h", "--jitter", "2ms")
    eventually(lambda: rule(daemon)["state"] == "resting")
    assert client.wait(client.read()).error == 0
    assert rule(daemon)["cycle"] == {"on_ns": 1_000_000, "period_ns": 3_600_000_000_000, "jitter_ns": 2_000_000}
    assert "rests until the next turn of its cycle" in daemon.cli("list").stdout


def test_a_range_is_hit_where_it_is_touched(daemon, client):
    daemon.cli("inject", "d", "-e", "EIO", "--range", "64K..128K")
    assert client.wait(client.read(60 << 10)).error == 0
    assert client.wait(client.read(62 << 10)).error == errno.EIO
    assert client.wait(client.read(124 << 10)).error == errno.EIO
    assert client.wait(client.read(128 << 10)).error == 0


def test_types(daemon, client):
    daemon.cli("inject", "d", "-e", "EIO", "-T", "flush,trim")
    assert client.wait(client.read()).error == 0
    assert client.wait(client.write()).error == 0
    assert client.wait(client.zero()).error == 0
    assert client.wait(client.flush()).error == errno.EIO
    assert client.wait(client.trim()).error == errno.EIO


def test_flush_and_trim_are_left_alone_unless_named(daemon, client):
    daemon.cli("inject", "d", "-e", "EIO")
    assert client.wait(client.flush()).error == 0
    assert client.wait(client.trim()).error == 0
    assert client.wait(client.zero()).error == errno.EIO


def test_a_fua_write_is_charged_as_a_write_and_as_the_flush_after_it(daemon, client):
    daemon.cli("inject", "d", "-D", "20ms", "-T", "flush")
    client.wait(client.write())
    assert rule(daemon)["matched"] == 0
    assert client.wait(client.write(flags=1)).latency >= 20 * MS
    assert rule(daemon)["held"] == 1


def test_a_client_is_chosen_by_its_name(daemon, client):
    daemon.cli("inject", "d", "-e", "EIO", "--client", "uid=4294967295 *")
    assert client.wait(client.read()).error == 0
    daemon.cli("inject", "d", "-e", "ENOSPC", "--client", "uid=*")
    assert client.wait(client.read()).error == errno.ENOSPC


def test_probability_injects_into_about_that_share(daemon, client):
    """A rule with `-f 10%` must fail about that share of the I/Os. With 2,000 draws at 10 %, a count outside of 100
    to 320 has a probability of less than 1 in 10^12."""
    daemon.cli("inject", "d", "-e", "EIO", "-f", "10%")
    failed = sum(request.error == errno.EIO for request in client.many(2000, 32))
    assert 100 < failed < 320
    assert (rule(daemon)["matched"], rule(daemon)["injected"]) == (2000, failed)


# Several rules.


def test_a_tail_stacks_on_a_baseline(daemon, client):
    """With a baseline rule of `2ms` and then a tail of `500ms -f 1%`, the baseline must not beat the tail."""
    daemon.cli("inject", "d", "-D", "2ms")
    daemon.cli("inject", "d", "-D", "500ms", "-f", "1%")
    requests = client.many(1500, 64)
    assert min(request.latency for request in requests) >= 2 * MS
    base, tail = rule(daemon, 1), rule(daemon, 2)
    assert base["matched"] == tail["matched"] == 1500
    assert 0 < tail["injected"] < 100
    assert base["injected"] == base["matched"] - tail["injected"]
    assert sum(request.latency >= 500 * MS for request in requests) >= tail["injected"]


def test_a_hang_takes_one_zio_from_a_baseline(daemon, client):
    daemon.cli("inject", "d", "-D", "2ms")
    daemon.cli("inject", "d", "--hang", "--first", "1")
    hung = client.read()
    others = client.many(100, 4)
    assert all(request.latency >= 2 * MS for request in others)
    assert hung.answered is None
    assert rule(daemon, 2)["taken"] == 1
    assert daemon.disk()["in_flight"]
    daemon.cli("clear", "2", "--release")
    client.wait(hung)


def test_a_flush_rule_slows_flushes_only(daemon, client):
    daemon.cli("inject", "d", "-D", "2ms")
    daemon.cli("inject", "d", "-D", "20ms", "-T", "flush")
    client.many(20, 4)
    for _ in range(3):
        assert client.wait(client.flush()).latency >= 20 * MS
    assert (rule(daemon, 1)["matched"], rule(daemon, 2)["matched"]) == (20, 3)


def test_two_delays_in_one_call_are_three_lanes(daemon, client):
    daemon.cli("inject", "d", "-D", "10ms:1", "-D", "25ms:2")
    requests = [client.read() for _ in range(10)]
    client.wait(*requests)
    never_early(requests, [10, 20, 25, 25, 30, 40, 50, 50, 50, 60])
    assert rule(daemon, 1)["injected"] + rule(daemon, 2)["injected"] == 10
    assert rule(daemon, 1)["injected"] and rule(daemon, 2)["injected"]


def test_joining_a_group_adds_lanes(daemon, client):
    daemon.cli("inject", "d", "-D", "10ms:1")
    daemon.cli("inject", "d", "-D", "10ms:1", "--with", "1")
    assert rule(daemon, 1)["group"] == rule(daemon, 2)["group"]
    requests = [client.read() for _ in range(4)]
    client.wait(*requests)
    never_early(requests, [10, 10, 20, 20])


def test_added_delays_sum_up(daemon, client):
    daemon.cli("inject", "d", "-D", "10ms", "--mode", "add")
    daemon.cli("inject", "d", "-D", "20ms", "--mode", "add")
    daemon.cli("inject", "d", "-D", "30ms")
    assert client.wait(client.read()).latency >= 60 * MS


# The output of `list`.


def test_list_says_why_a_rule_injected_nothing(daemon, client):
    daemon.cli("inject", "d", "-D", "2ms", "-D", "50ms")
    client.many(10, 1)
    assert rule(daemon, 2)["matched"] == 10 and rule(daemon, 2)["injected"] == 0
    assert "beaten by rule 1" in daemon.cli("list").stdout
    assert "beaten by rule 1" in rule(daemon, 2)["why_nothing"]


@pytest.mark.parametrize("words", [["--hang"], ["-D", "60m"], ["-D", "60m:1", "--mode", "add"], ["--bandwidth", "1B"]])
def test_what_is_held_now_is_injected(daemon, client, words):
    daemon.cli("inject", "d", *words)
    for _ in range(2):
        client.read()
    eventually(lambda: rule(daemon)["matched"] == 2, "both are held")
    held = rule(daemon)
    assert (held["injected"], held["held"], held["now"], held["why_nothing"]) == (2, 0, 2, None)
    titles, row = daemon.cli("list", "--wide").stdout.splitlines()
    assert "injected" in titles and row.split()[1:4] == ["2", "2", "0"], row
    client.close()
    eventually(lambda: rule(daemon)["aborted"] == 2, "the client is gone")
    gone = rule(daemon)
    assert (gone["injected"], gone["now"], gone["why_nothing"]) == (2, 0, None)


def test_what_another_rule_holds_longer_is_not_injected(daemon, client):
    daemon.cli("inject", "d", "-D", "10m")
    daemon.cli("inject", "d", "-D", "60m")
    client.read()
    eventually(lambda: rule(daemon, 2)["now"] == 1)
    beaten = rule(daemon, 1)
    assert (beaten["taken"], beaten["injected"], beaten["now"]) == (1, 0, 0)
    assert beaten["why_nothing"] == "another rule decided"
    client.close()
    eventually(lambda: rule(daemon, 2)["aborted"] == 1)
    assert (rule(daemon, 1)["beaten"], rule(daemon, 1)["aborted"]) == (1, 0)


def test_list_says_when_the_store_was_slower(serve, directory):
    with open(directory / "store.img", "wb") as store:
        store.truncate(1 << 20)
    daemon = serve("-d", f"d=file:{store.name}")
    client = Client(daemon)
    daemon.cli("inject", "d", "-D", "1ns", "-T", "flush")
    client.wait(client.write())
    client.wait(client.flush())
    counted = rule(daemon)
    assert (counted["injected"], counted["held"], counted["overrun"]) == (1, 0, 1)
    assert "--mode add" in daemon.cli("list").stdout


def test_inject_answers_with_the_rule_as_understood(daemon):
    answer = daemon.cli("inject", "d", "-D", "0.01s:2", "--name", "slow").stdout
    assert "-D 10ms:2" in answer and "slow" in answer


def test_a_rule_has_a_name(daemon, client):
    daemon.cli("inject", "d", "-e", "EIO", "--name", "bad")
    daemon.cli("update", "bad", "-e", "ENOSPC")
    assert client.wait(client.read()).error == errno.ENOSPC
    daemon.cli("clear", "bad")
    assert client.wait(client.read()).error == 0


# Changes.


def test_update_keeps_the_counters(daemon, client):
    daemon.cli("inject", "d", "-D", "1ms:1")
    client.many(10, 2)
    daemon.cli("update", "1", "-D", "5ms:2")
    assert client.wait(client.read()).latency >= 5 * MS
    assert rule(daemon)["matched"] == 11


def test_a_change_is_in_force_when_it_is_acknowledged(daemon, client):
    for _ in range(20):
        daemon.cli("inject", "d", "-e", "EIO", "--name", "now")
        assert client.wait(client.read()).error == errno.EIO
        daemon.cli("clear", "now")
        assert client.wait(client.read()).error == 0


def test_clear_leaves_alone_what_is_held(daemon, client):
    daemon.cli("inject", "d", "-D", "400ms")
    held = client.read()
    eventually(lambda: rule(daemon)["matched"] == 1)
    daemon.cli("clear", "1")
    assert daemon.rules() == {}
    assert client.wait(held).latency >= 400 * MS


def test_what_hangs_by_a_cleared_rule_is_said(daemon, client):
    daemon.cli("inject", "d", "--hang")
    read = client.read(0)
    eventually(lambda: "hung" in daemon.cli("status", "--inflight").stdout, "a zio that hangs")
    assert "still hangs" not in daemon.cli("list").stdout
    daemon.cli("clear", "1")
    said = daemon.cli("list").stdout
    assert "no rule is armed" in said and "I/O still hangs by rule 1" in said
    assert "are released" in daemon.cli("clear", "d", "--release").stdout
    client.wait(read)
    assert "still hangs" not in daemon.cli("list").stdout


@pytest.mark.parametrize("target", ["1", "d", "all"])
def test_clear_release_completes_what_is_held(daemon, client, target):
    daemon.cli("inject", "d", "-D", "60m:1")
    held = [client.read() for _ in range(10)]
    eventually(lambda: rule(daemon)["matched"] == 10)
    daemon.cli("clear", target, "--release")
    assert all(request.error == 0 for request in client.wait(*held))


def test_reset_leaves_nothing(daemon, client):
    daemon.cli("inject", "d", "-D", "60m")
    daemon.cli("inject", "d", "-e", "EIO")
    daemon.cli("suspend", "d", "--now")
    daemon.cli("reset")
    assert daemon.rules() == {}
    assert client.wait(client.read()).error == 0


def test_for_and_after(daemon, client):
    before = time.monotonic()
    daemon.cli("inject", "d", "-e", "EIO", "--after", "300ms")
    request = client.wait(client.read())
    if request.error:
        assert request.answered - before >= 300 * MS
    eventually(lambda: client.wait(client.read()).error == errno.EIO)
    daemon.cli("reset")
    daemon.cli("inject", "d", "-e", "EIO", "--for", "300ms")
    eventually(lambda: client.wait(client.read()).error == 0)
    assert time.monotonic() - before >= 600 * MS


def test_a_rule_for_the_life_of_a_command(daemon, client):
    command = daemon.start("inject", "d", "-e", "EIO", "--", "sh", "-c", "exec cat")
    eventually(lambda: daemon.rules())
    assert client.wait(client.read()).error == errno.EIO
    command.stdin.close()
    assert command.wait() == 0
    assert client.wait(client.read()).error == 0
    daemon.cli("inject", "d", "-e", "EIO", "--", "sh", "-c", "exit 7", code=7)
    assert daemon.rules() == {}


# Suspension.


@pytest.mark.parametrize("undo", ["clear 1", "reset"])
def test_a_rule_that_is_gone_before_its_command_leaves_the_status(daemon, undo):
    ended = daemon.cli("inject", "d", "-D", "1ms", "--", "sh", "-c", f"'{BINARY}' {undo} && exit 7", code=7)
    assert "rule 1 was cleared" in ended.stderr


def test_a_daemon_that_is_gone_before_the_command_leaves_the_status(daemon):
    ended = daemon.cli("inject", "d", "-D", "1ms", "--", "sh", "-c", f"kill {daemon.pid}; exit 7", code=None)
    daemon.stop()
    assert ended.returncode == 7, ended.stderr


def test_an_empty_command_is_refused(daemon):
    """An empty command is refused: `-- $CMD` with an unset `CMD` must not arm the rule for good."""
    assert "no command after '--'" in daemon.cli("inject", "d", "-D", "1ms", "--", code=2).stderr
    assert daemon.rules() == {}


def test_suspend_holds_new_zios_until_resume(daemon, client):
    daemon.cli("suspend", "d", "--now")
    requests = [client.read(), client.write(4096), client.flush()]
    eventually(lambda: daemon.disk()["in_flight"] == 3)
    client.handle.poll(0)
    assert all(request.answered is None for request in requests)
    daemon.cli("resume", "d")
    client.wait(*requests)


def test_suspend_returns_when_nothing_is_in_flight(daemon, client):
    daemon.cli("inject", "d", "-D", "400ms")
    held = client.read()
    eventually(lambda: rule(daemon)["matched"] == 1)
    daemon.cli("suspend", "d")
    returned = time.monotonic()
    assert client.wait(held).error == 0
    assert returned - held.sent >= 400 * MS


def test_suspend_says_what_it_waits_for_and_the_way_out(daemon, client):
    daemon.cli("inject", "d", "--hang", "--first", "1")
    hung = client.read()
    eventually(lambda: rule(daemon)["matched"] == 1)
    waiting = daemon.start("suspend", "d", "--for", "300ms")
    out, errors = waiting.communicate()
    assert waiting.returncode == 1 and out == "" and "still in flight" in errors, errors
    assert f"a read of uid={os.getuid()} pid={os.getpid()} hangs by rule 1" in errors
    assert "'dashpot clear d --release' lets it go" in errors
    daemon.cli("clear", "d", "--release")
    client.wait(hung)
    assert daemon.cli("suspend", "d").stderr == ""


def test_all_disks_get_a_rule_or_none_does(serve):
    daemon = serve("-d", "a=ram,size=2M", "-d", "b=ram,size=1M")
    daemon.cli("inject", "all", "-D", "1ms")
    assert [rule["disk"] for rule in daemon.rules().values()] == ["a", "b"]
    daemon.cli("clear", "all")
    refused = daemon.cli("inject", "all", "-D", "1ms", "--range", "1M..2M", code=1).stderr
    assert "not armed on disk b, so on no disk" in refused, refused
    refused = daemon.cli("inject", "all", "-D", "1ms", "--name", "slow", code=1).stderr
    assert "--name slow: a name is for one rule, and 'all' makes 2 here: leave --name out" in refused
    assert not daemon.rules()
    daemon.cli("inject", "b", "-D", "1ms", "--name", "one")
    during = daemon.cli("inject", "all", "-D", "2ms", "--", BINARY, "list").stdout
    assert sum("-D 2ms" in line for line in during.splitlines()) == 2
    assert len(daemon.rules()) == 1


def test_what_was_done_is_json_too(daemon):
    daemon.cli("inject", "d", "-D", "1ms")
    assert daemon.json("suspend", "d") == {"in_flight": 0}
    assert daemon.json("resume", "d") == {"waiting": 0}
    assert daemon.json("clear", "all")["cleared"] == [1]
    assert daemon.json("reset")["cleared"] == []


def test_suspend_now_does_not_wait(daemon, client):
    daemon.cli("inject", "d", "-D", "60m")
    held = client.read()
    eventually(lambda: rule(daemon)["matched"] == 1)
    daemon.cli("suspend", "d", "--now")
    daemon.cli("clear", "all", "--release")
    client.wait(held)


def test_suspend_for_resumes_by_itself(daemon, client):
    before = time.monotonic()
    daemon.cli("suspend", "d", "--for", "300ms")
    request = client.wait(client.read())
    assert request.answered - before >= 300 * MS


def test_lanes_are_charged_at_resume(daemon, client):
    daemon.cli("inject", "d", "-D", "50ms:1")
    daemon.cli("suspend", "d", "--now")
    requests = [client.read() for _ in range(3)]
    eventually(lambda: daemon.disk()["in_flight"] == 3)
    before = time.monotonic()
    daemon.cli("resume", "d")
    client.wait(*requests)
    answers = sorted(request.answered - before for request in requests)
    assert all(answer >= 50 * MS * (i + 1) for i, answer in enumerate(answers))


def test_a_client_that_leaves_gives_its_lane_back(daemon):
    """A rule serves one zio at a time, for an hour, and a client sends five zios. When the client leaves, the lane
    must stay busy only until the service that has begun would have ended."""
    daemon.cli("inject", "d", "-D", "60m:1")
    leaver = Client(daemon)
    held = [leaver.read() for _ in range(5)]
    eventually(lambda: rule(daemon)["matched"] == 5)
    assert rule(daemon)["backlog_ns"] > 4 * 3600 * 10**9
    del held, leaver
    eventually(lambda: rule(daemon)["backlog_ns"] <= 3600 * 10**9)


@pytest.mark.parametrize("state", ["held", "hung", "suspended"])
def test_shutdown_fails_what_it_cannot_finish(daemon, state):
    """When the daemon ends, a zio that it cannot finish must fail: it may neither succeed early nor block the
    end."""
    client = wire.Wire(daemon.connect())
    client.go("d")
    if state == "suspended":
        daemon.cli("suspend", "d", "--now")
    else:
        daemon.cli("inject", "d", *(["-D", "60m"] if state == "held" else ["--hang"]))
    client.request(wire.CMD_READ, 0, 4096, cookie=7)
    eventually(lambda: daemon.disk()["in_flight"])
    daemon.stop()
    assert client.simple_reply() == (errno.ESHUTDOWN, 7, b"")
    assert client.is_closed_by_server()
