"""Any statistic over the API: columns of the past, seconds as they end, and the differences of a rectangle."""

import http.client
import json
import socket
import urllib.parse

import pytest
from conftest import BINARY, HANG_LIMIT, eventually, run

SECOND = 1_000_000_000


class Connection(http.client.HTTPConnection):
    """HTTP over the daemon's unix socket."""

    def __init__(self, daemon):
        super().__init__("dashpot", timeout=HANG_LIMIT)
        self.path = str(daemon.api)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(HANG_LIMIT)
        self.sock.connect(self.path)


def ask(daemon, path, expect=200, **query):
    connection = Connection(daemon)
    connection.request("GET", f"{path}?{urllib.parse.urlencode(query)}")
    answer = connection.getresponse()
    said = json.loads(answer.read())
    assert answer.status == expect, said
    return said


def columns(daemon, statistic, expect=200, **query):
    return ask(daemon, "/v1/statistics/columns", expect, statistic=statistic, **query)


def wait_until_over(daemon, second):
    """Waits until a second of the daemon's clock is over."""
    eventually(lambda: ask(daemon, "/v1/clock")["now_ns"] >= (second + 1) * SECOND, "a second that is over")


@pytest.fixture
def ten(serve):
    """A daemon with ten disks under the same load, one of which is slow; and the seconds for which the load ran."""
    disks = [word for n in range(10) for word in ("-d", f"c1t{n}d0=ram,size=64M")]
    daemon = serve(*disks, "-r", "c1t3d0 -D 100ms -T read")
    daemon.begun = ask(daemon, "/v1/clock")["now_ns"] // SECOND
    loads = [
        daemon.start(
            "load", daemon.uri(f"c1t{n}d0"), "--rate", "200", "--depth", "32", "--write", "50%", "--time", "1s"
        )
        for n in range(10)
    ]
    for load in loads:
        load.communicate(timeout=HANG_LIMIT)
        assert load.returncode == 0
    last = ask(daemon, "/v1/clock")["now_ns"] // SECOND
    wait_until_over(daemon, last)
    daemon.ended = last + 1
    daemon.during = {"from_ns": daemon.begun * SECOND, "to_ns": daemon.ended * SECOND}
    return daemon


def sums(said):
    """The numbers of I/Os and bytes of each value."""
    found = {}
    for column in said["columns"]:
        assert column["dropped"] == 0
        for part in column["parts"]:
            count, size = found.get(part["value"], (0, 0))
            found[part["value"]] = (count + part["count"], size + part["bytes"])
    return found


def events(daemon, **query):
    return ask(daemon, "/v1/events", after=0, limit=10_000, **daemon.during, **query)["zios"]


def test_columns_are_what_the_single_ios_add_up_to(ten):
    zios = events(ten)
    for statistic, key in [
        ("disk.ops[device]", lambda zio: zio["disk"]),
        ("disk.latency[op]", lambda zio: zio["op"]),
        ("disk.hold[rule]", lambda zio: str(zio["rule"] or "none")),
        ("disk.ops[fua]", lambda zio: "yes" if zio["fua"] else "no"),
        ("disk.ops[size]", lambda zio: "4K-8K"),
    ]:
        expected = {}
        for zio in zios:
            count, size = expected.get(key(zio), (0, 0))
            expected[key(zio)] = (count + 1, size + zio["length_bytes"])
        said = columns(ten, statistic, **ten.during)
        assert sums(said) == expected, statistic
        assert [said["from_ns"], said["to_ns"]] == list(ten.during.values())
    # Wider columns contain the same I/Os.
    assert sums(columns(ten, "disk.hold[rule]", **ten.during, step_ns=3 * SECOND)) == sums(
        columns(ten, "disk.hold[rule]", **ten.during)
    )


def test_both_memories_tell_the_same_latencies(ten):
    """The daemon answers a question without a condition from its memory of seconds, and the same question with a
    condition from single I/Os. If all I/Os meet the condition, both answers must be the same.
    """
    one = columns(ten, "disk.latency[op]", **ten.during)
    other = columns(ten, "disk.latency[size>=0][op]", **ten.during)
    assert one["buckets"] == other["buckets"]
    assert one["columns"] == other["columns"] != []
    said = columns(ten, "disk.latency[device=c1t3d0][op=read]", **ten.during, step_ns=60 * SECOND)
    (part,) = said["columns"][0]["parts"][:1]
    numbers = part["numbers"]
    assert numbers["p50"] >= numbers["min"] >= 100_000_000
    assert sum(numbers["counts"]) == numbers["count"] == part["count"]
    (low, _), (_, high) = bounds(said["buckets"], numbers)[0], bounds(said["buckets"], numbers)[-1]
    assert low <= numbers["min"] <= numbers["max"] <= high


def bounds(buckets, numbers):
    """The bounds of the occupied buckets of a distribution."""
    found = [(buckets["from"][at], buckets["to"][at]) for at in numbers["buckets"]]
    assert found == sorted(found) and all(low <= high for low, high in found)
    return found


def test_the_ios_behind_a_cell_are_those_that_it_counts(ten):
    where = "[op=read][latency>=80ms][latency<10s]"
    zios = events(ten, layer="disk", where=where)
    assert ("c1t3d0", "read") in {(zio["disk"], zio["op"]) for zio in zios}
    counted = sums(columns(ten, f"disk.ops{where}", **ten.during))
    assert counted[None][0] == len(zios) > 50


def test_seconds_as_they_end_are_those_of_the_past(daemon):
    names = ["disk.latency[op]", "disk.ops[size]", "disk.errors"]
    connection = Connection(daemon)
    connection.request(
        "POST", "/v1/statistics/watch", json.dumps({"statistics": names}), {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
    load = daemon.start("load", daemon.uri("d"), "--rate", "300", "--depth", "4", "--write", "50%", "--time", "3s")
    seconds = []
    while not any(column["parts"] for column in seconds[-1]["columns"]) if seconds else True:
        seconds.append(event(answer))
    seconds.append(event(answer))
    load.communicate(timeout=HANG_LIMIT)
    connection.close()
    first, last = (seconds[-2]["start_ns"], seconds[-1]["start_ns"])
    assert last == first + SECOND and seconds[-1]["missed"] == 0
    for place, name in enumerate(names):
        said = columns(daemon, name, from_ns=first, to_ns=last + SECOND)
        past = [bounded(said["buckets"], column) for column in said["columns"]]
        live = [bounded(second["buckets"], second["columns"][place]) for second in seconds[-2:]]
        assert past == [column for column in live if column["parts"]], name


def bounded(buckets, column):
    """Puts the bounds of buckets into a column, in place of their indices, which are valid in only one answer."""
    for part in column["parts"]:
        if part["numbers"]:
            part["numbers"]["buckets"] = bounds(buckets, part["numbers"])
    return column


def event(answer):
    """The data of the next event of a stream."""
    lines = [answer.readline().decode() for _ in range(3)]
    assert lines[0] == "event: second\n" and lines[2] == "\n", lines
    return json.loads(lines[1].removeprefix("data: "))


def test_a_rectangle_finds_the_slow_disk_of_ten(ten):
    slow = {"begin_ns": ten.begun * SECOND, "end_ns": ten.ended * SECOND, "least": 80_000_000}
    said = ask(ten, "/v1/statistics/diff", statistic="disk.latency", **ten.during, **slow)
    assert not said["too_few"]
    first = {one["dimension"]: one["values"][0]["value"] for one in said["differs"]}
    assert (first["device"], first["op"], first["rule"]) == ("c1t3d0", "read", "1")
    assert said["differs"][0]["dimension"] == "rule" and said["differs"][0]["points"] > 80
    assert said["spent"][0]["wait"] == "hold"
    assert "fua" in said["alike"]
    few = ask(ten, "/v1/statistics/diff", statistic="disk.latency", **ten.during, **{**slow, "least": 3600 * SECOND})
    assert few["too_few"] and few["differs"] == []


def test_a_rectangle_finds_the_slow_client_of_eight(serve):
    daemon = serve("-d", "d=ram,size=64M")
    begun = ask(daemon, "/v1/clock")["now_ns"] // SECOND
    loads = [daemon.start("load", daemon.uri("d"), "--rate", "100", "--depth", "32", "--time", "2s") for _ in range(8)]
    slow = loads[5].pid
    daemon.cli("inject", "d", "-D", "100ms", "--client", f"*pid={slow}")
    for load in loads:
        load.communicate(timeout=HANG_LIMIT)
    ended = ask(daemon, "/v1/clock")["now_ns"] // SECOND + 1
    wait_until_over(daemon, ended - 1)
    said = ask(
        daemon,
        "/v1/statistics/diff",
        statistic="disk.latency",
        from_ns=begun * SECOND,
        to_ns=ended * SECOND,
        begin_ns=begun * SECOND,
        end_ns=ended * SECOND,
        least=80_000_000,
    )
    first = {one["dimension"]: one["values"][0]["value"] for one in said["differs"]}
    assert first["client"].endswith(f"pid={slow}")


def test_bad_questions_are_refused_with_a_remedy(daemon):
    for query, status, words in [
        ({"statistic": "disk.latancy"}, 422, "did you mean 'latency'?"),
        ({"statistic": "disk.busy"}, 422, "columns of seconds have no busy time"),
        ({"statistic": "disk.ops[process]"}, 422, "a daemon does not know the process"),
        ({"statistic": "disk.ops", "from_ns": 7}, 400, "from_ns is 7: intervals are of whole seconds"),
    ]:
        said = ask(daemon, "/v1/statistics/columns", status, **query)
        assert words in said["error"], said
    long = {"statistic": "disk.ops", "from_ns": 0, "to_ns": 4_000 * SECOND}
    now = ask(daemon, "/v1/clock")["now_ns"]
    if now > 4_000 * SECOND:
        assert "columns are too many" in ask(daemon, "/v1/statistics/columns", 422, **long)["error"]
    empty = {"statistic": "disk.latency", "from_ns": 0, "to_ns": SECOND, "begin_ns": 0, "end_ns": 0, "least": 0}
    assert ask(daemon, "/v1/statistics/diff", 422, **empty)["error"] == "the rectangle is empty"
    counted = {**empty, "statistic": "disk.ops", "end_ns": SECOND}
    assert "no numbers to draw" in ask(daemon, "/v1/statistics/diff", 422, **counted)["error"]


def test_streams_are_bounded(daemon):
    def watch(statistics):
        connection = Connection(daemon)
        connection.request(
            "POST", "/v1/statistics/watch", json.dumps({"statistics": statistics}), {"Content-Type": "application/json"}
        )
        return connection, connection.getresponse()

    _, answer = watch(["disk.ops"] * 17)
    assert answer.status == 422 and "at most 16" in json.loads(answer.read())["error"]
    held = [watch(["disk.ops"]) for _ in range(32)]
    assert {answer.status for _, answer in held} == {200}
    _, answer = watch(["disk.ops"])
    assert answer.status == 503 and "32 streams" in json.loads(answer.read())["error"]
    held[0][0].close()
    held[0][1].close()
    eventually(lambda: watch(["disk.ops"])[1].status == 200, "a place that is free again")


def test_words_have_the_values_that_are_known(daemon):
    said = ask(daemon, "/v1/statistics")
    dimensions = {one["word"]: one for one in said["dimensions"]}
    assert said["layers"] == ["disk", "volume"] and "process" not in dimensions
    assert dimensions["device"]["values"] == ["d"] and dimensions["latency"]["unit"] == "ns"
    run(BINARY, "load", daemon.uri("d"), "--time", "100ms")
    found = ask(daemon, "/v1/statistics")["dimensions"]
    (clients,) = [one["values"] for one in found if one["word"] == "client"]
    assert len(clients) == 1 and "pid=" in clients[0]


def test_the_engine_expects_what_a_rule_will_do(daemon):
    """The load runs without a rule. The daemon simulates its I/Os under a rule, and must predict the rule's effect."""
    daemon.cli("load", daemon.uri("d"), "--rate", "100", "--depth", "4", "--time", "2s")
    last = ask(daemon, "/v1/clock")["now_ns"] // SECOND
    wait_until_over(daemon, last)
    connection = Connection(daemon)
    connection.request(
        "POST",
        "/v1/disks/d/expect",
        json.dumps({"rule": "-D 50ms:1 -T read --for 60s"}),
        {"Content-Type": "application/json"},
    )
    said = json.loads(connection.getresponse().read())
    assert said["measured"]["count"] == said["expected"]["count"] > 100
    # One lane of 50 ms serves 20 I/Os a second, but 100 arrive, so most of them still wait at the end.
    assert said["expected"]["min"] == 50_000_000 and said["expected"]["max"] > 3 * SECOND
    assert said["waiting"] > said["measured"]["count"] / 2
    assert daemon.rules() == {}
