"""Finished zios: one by one, second by second, and by client and size."""

import http.client
import json
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.parse

import wire
from conftest import eventually
from wire import Wire

TESTS = pathlib.Path(__file__).resolve().parent
# The memory that one remembered zio takes, in bytes.
KEPT = 104


def ask(daemon, path, **query):
    """An answer of the API. The request must be valid."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.connect(str(daemon.api))
    connection.request("GET", f"{path}?{urllib.parse.urlencode(query)}")
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    assert answer.status == 200, body
    return body


def connect(daemon, disk="d"):
    client = Wire(daemon.connect())
    client.go(disk)
    return client


def read(client, offset=0, length=4096):
    assert client.call(wire.CMD_READ, offset, length) == 0


def write(client, offset, data, flags=0):
    assert client.call(wire.CMD_WRITE, offset, len(data), flags, data) == 0


def read_elsewhere(daemon, count, disk="d"):
    """Reads from a disk in a separate process, and returns the pid of that process."""
    script = f"""
import os, socket, sys
sys.path.insert(0, {str(TESTS)!r})
from wire import *
plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
plain.connect({str(daemon.nbd)!r})
client = Wire(plain)
client.go({disk!r})
for i in range({count}):
    assert client.in_step()
print(os.getpid())
"""
    return int(subprocess.check_output([sys.executable, "-c", script]))


def totals(latency):
    """For each operation, the numbers of completed zios, of bytes, of disk latencies and of store latencies."""
    sums = {}
    for op in latency["ops"]:
        numbers = [op["completed"], op["bytes"], op["disk"]["count"], op["store"]["count"]]
        before = sums.get(op["op"], [0] * 4)
        sums[op["op"]] = [a + b for a, b in zip(before, numbers)]
    return {op: numbers for op, numbers in sums.items() if any(numbers)}


def test_every_read_is_told_once_with_where_its_time_went(daemon):
    daemon.cli("inject", "d", "-D", "3ms:1", "-T", "read")
    client = connect(daemon)
    before = ask(daemon, "/v1/events")
    assert (before["zios"], before["next"], before["forgotten"]) == ([], 0, 0)
    for block in range(20):
        read(client, block << 12)
    write(client, 4096, bytes(512), wire.FLAG_FUA)
    told = ask(daemon, "/v1/events", after=before["next"])
    assert (told["next"], told["forgotten"], told["dropped"]) == (21, 0, 0)
    reads, (written,) = told["zios"][:20], told["zios"][20:]
    assert [zio["offset_bytes"] for zio in reads] == [block << 12 for block in range(20)]
    for zio in told["zios"]:
        assert sum(zio["waits"].values()) == zio["total_ns"] == zio["ended_ns"] - zio["arrived_ns"]
        assert (zio["disk"], zio["error"]) == ("d", None)
        assert re.fullmatch(r"uid=\d+ pid=\d+", zio["client"])
    for zio in reads:
        assert (zio["op"], zio["length_bytes"], zio["rule"], zio["lane"]) == ("read", 4096, 1, 0)
        waits = zio["waits"]
        assert waits["store_ns"] + waits["hold_ns"] >= 3_000_000 > waits["hold_ns"] - 1
    assert (written["op"], written["fua"], written["rule"]) == ("write", True, None)
    assert ask(daemon, "/v1/events", after=0, op="fua")["zios"] == [written]
    assert ask(daemon, "/v1/events", after=0, op="read,write")["zios"] == told["zios"]
    assert (written["waits"]["hold_ns"], written["length_bytes"]) == (0, 512)


def test_what_is_asked_for_is_what_is_told(serve):
    daemon = serve("-d", "a=ram,size=1M", "-d", "b=ram,size=1M")
    daemon.cli("inject", "b", "-D", "5ms", "-T", "read")
    for disk in ("a", "b"):
        client = connect(daemon, disk)
        for _ in range(3):
            write(client, 0, bytes(512))
            read(client)
        client.close()

    def told(**query):
        return [(zio["disk"], zio["op"]) for zio in ask(daemon, "/v1/events", after=0, **query)["zios"]]

    assert len(told()) == 12
    assert told(disk="a", op="read") == [("a", "read")] * 3
    assert told(op="flush,trim") == []
    every = ask(daemon, "/v1/events", after=0)["zios"]
    slow = ask(daemon, "/v1/events", after=0, min_ns=5_000_000)["zios"]
    assert slow == [zio for zio in every if zio["total_ns"] >= 5_000_000]
    assert len([zio for zio in slow if (zio["disk"], zio["op"]) == ("b", "read")]) == 3
    first = ask(daemon, "/v1/events", after=0, disk="b", limit=2)
    rest = ask(daemon, "/v1/events", after=first["next"], disk="b")
    assert (len(first["zios"]), len(rest["zios"])) == (2, 4)
    ends = [zio["ended_ns"] for zio in first["zios"] + rest["zios"]]
    assert ends == sorted(ends) and len(set(ends)) == 6


def test_errors_and_suspensions_are_told(daemon):
    daemon.cli("inject", "d", "-e", "EIO", "-T", "write", "--first", "1")
    client = connect(daemon)
    assert client.call(wire.CMD_WRITE, 0, 512, data=bytes(512)) == wire.EIO
    daemon.cli("suspend", "d")
    client.request(wire.CMD_READ, 0, 512)
    eventually(lambda: daemon.disk()["in_flight"] == 1, "it waits")
    assert len(ask(daemon, "/v1/events", after=0)["zios"]) == 1, "what is in flight is in no event"
    daemon.cli("resume", "d")
    assert client.simple_reply(512).error == 0
    failed, waited = ask(daemon, "/v1/events", after=0)["zios"]
    assert (failed["error"], failed["rule"]) == ("EIO", 1)
    assert waited["waits"]["suspend_ns"] > 0
    assert sum(waited["waits"].values()) == waited["total_ns"]


def test_proof_does_not_blame_clients_for_a_suspension(daemon):
    """A read waits until its disk is resumed. The wait for the suspended disk must be in the read's total latency, but
    in no figure of its client.
    """
    daemon.cli("inject", "d", "-D", "1ms", "-T", "read")
    client = connect(daemon)
    daemon.cli("suspend", "d")
    client.request(wire.CMD_READ, 0, 512)
    eventually(lambda: daemon.disk()["in_flight"] == 1, "it waits")
    daemon.cli("resume", "d")
    assert client.simple_reply(512).error == 0
    eventually(lambda: daemon.rules()[1]["held"] == 1, "it is counted")
    latency = ask(daemon, "/v1/disks/d/latency")
    (waited,) = ask(daemon, "/v1/events", after=0)["zios"]
    suspended = int(latency["suspended_ns"])
    assert suspended == waited["waits"]["suspend_ns"] > 0
    (op,) = [op for op in latency["ops"] if op["op"] == "read"]
    (proof,) = daemon.json("proof")
    assert proof["client_ns"] == int(op["total"]["sum_ns"]) - int(op["disk"]["sum_ns"]) - suspended


def test_clients_add_up_to_their_disk(daemon):
    client = connect(daemon)
    other = read_elsewhere(daemon, 30)
    for block in range(50):
        read(client, block << 12)
    write(client, 0, bytes(512))
    by_client = ask(daemon, "/v1/disks/d/latency", by="client")
    whole = ask(daemon, "/v1/disks/d/latency")
    assert (
        totals(by_client)
        == totals(whole)
        == {
            "read": [80, 80 << 12, 80, 80],
            "write": [1, 512, 1, 1],
        }
    )
    assert by_client["dropped"] == whole["dropped"] == 0
    reads = {op["by"]: op["completed"] for op in by_client["ops"] if op["op"] == "read"}
    assert sorted(reads.values()) == [30, 50]
    assert [count for name, count in reads.items() if name.endswith(f"pid={other}")] == [30]
    names = {(zio["client"], zio["op"]) for zio in ask(daemon, "/v1/events", after=0)["zios"]}
    assert {name for name, _ in names} == set(reads)
    # The client has left. The counts of the first client stay. The next client gets the same id, but has a different
    # name.
    third = read_elsewhere(daemon, 7)
    again = ask(daemon, "/v1/disks/d/latency", by="client")
    reads = {op["by"]: op["completed"] for op in again["ops"] if op["op"] == "read"}
    assert [reads[name] for name in sorted(reads, key=reads.get)] == [7, 30, 50]
    assert [name for name in reads if name.endswith(f"pid={third}")]


def test_sizes_are_powers_of_two(daemon):
    client = connect(daemon)
    for length in (1, 512, 1023, 4096, 6000, 8192):
        read(client, 0, length)
    assert client.call(wire.CMD_FLUSH) == 0
    by_size = ask(daemon, "/v1/disks/d/latency", by="size")
    told = {(op["by"], op["op"]): op["completed"] for op in by_size["ops"]}
    assert told == {
        ("0", "flush"): 1,
        ("1", "read"): 1,
        ("512", "read"): 2,
        ("4K", "read"): 2,
        ("8K", "read"): 1,
    }
    assert totals(by_size) == totals(ask(daemon, "/v1/disks/d/latency"))


def test_a_slow_reader_is_told_what_it_has_missed(serve):
    daemon = serve("-d", "d=ram,size=1M", "--events", str(100 * KEPT))
    client = connect(daemon)
    for _ in range(10):
        read(client)
    cursor = ask(daemon, "/v1/events")["next"]
    for _ in range(250):
        read(client)
    late = ask(daemon, "/v1/events", after=cursor)
    assert (len(late["zios"]), late["forgotten"], late["next"]) == (100, 150, 260)
    assert ask(daemon, "/v1/events", after=late["next"])["forgotten"] == 0
    assert totals(ask(daemon, "/v1/disks/d/latency", by="client"))["read"][0] == 260


def test_no_event_need_be_remembered(serve, tmp_path):
    lab = tmp_path / "lab.toml"
    lab.write_text('[disk.d]\nstore = "ram"\nsize = "1M"\n[serve]\nevents = "0"\n')
    daemon = serve(str(lab))
    client = connect(daemon)
    read(client)
    told = ask(daemon, "/v1/events", after=0)
    assert (told["zios"], told["forgotten"], told["next"]) == ([], 1, 1)
    assert totals(ask(daemon, "/v1/disks/d/latency", by="client"))["read"][0] == 1


def test_seconds_are_whole_and_add_up(daemon):
    daemon.cli("inject", "d", "-D", "20ms", "-T", "read")
    client = connect(daemon)
    asked, seconds = 0, []
    while len(seconds) < 3:
        read(client)
        asked += 1
        seconds = ask(daemon, "/v1/seconds")["seconds"]
    last = ask(daemon, "/v1/seconds", disk="d")
    every = last["seconds"] + [last["running"]]
    latencies = [latency for second in every for latency in second["latencies"]]
    assert sum(latency["completed"] for latency in latencies) == asked
    assert sum(latency["bytes"] for latency in latencies) == asked << 12
    for latency in latencies:
        assert (latency["disk"], latency["op"]) == ("d", "read")
        assert latency["latency"]["count"] == latency["completed"]
        assert latency["latency"]["min_ns"] >= 20_000_000
    assert [second["dropped"] for second in every] == [0] * len(every)
    starts = [second["start_ns"] for second in every]
    assert starts == sorted(set(starts)) and all(start % 1_000_000_000 == 0 for start in starts)
    assert seconds == last["seconds"][: len(seconds)], "what is over does not change"
    assert ask(daemon, "/v1/seconds", after_ns=last["next_ns"])["seconds"] == last["seconds"][len(last["seconds"]) :]


def test_what_cannot_be_is_refused(daemon):
    def refused(path):
        done = subprocess.run(
            ["curl", "-s", "-o", "-", "-w", "%{http_code}", "--unix-socket", daemon.api, f"http://localhost{path}"],
            capture_output=True,
            text=True,
        )
        return done.stdout[-3:]

    assert refused("/v1/events?disk=nodisk") == "404"
    assert refused("/v1/events?op=raed") == "422"
    assert refused("/v1/events?after=now") == "400"
    assert refused("/v1/seconds?disk=nodisk") == "404"
    assert refused("/v1/disks/d/latency?by=colour") == "400"


def wake_ups(daemon):
    """How often each of the daemon's threads has gone to sleep."""
    tasks = pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()
    status = {task.name: (task / "status").read_text() for task in tasks}
    count = re.compile(r"\nvoluntary_ctxt_switches:\s+(\d+)")
    return {task: int(count.search(text)[1]) for task, text in status.items()}


def test_an_idle_daemon_does_not_wake_up(daemon):
    client = connect(daemon)
    for _ in range(100):
        read(client)
    ask(daemon, "/v1/events", after=0)

    def awake():
        """The threads that wake up within 3 s."""
        before = wake_ups(daemon)
        time.sleep(3)
        woken = [task for task, count in wake_ups(daemon).items() if count != before.get(task)]
        return {pathlib.Path(f"/proc/{daemon.pid}/task/{task}/comm").read_text().strip() for task in woken}

    # A client is connected but sends no requests: the shard wakes up now and then to notice stops. The collector may
    # take a moment for the last events.
    eventually(lambda: awake() <= {"dashpot-shard-0"}, "nothing but the shard of the client wakes up")
    client.close()
    eventually(lambda: not awake(), "nothing wakes up")


def test_a_search_through_much_finds_everything(serve):
    """A search looks at 100,000 zios at a time. Among 250,000 zios it must find all that match."""
    daemon = serve("-d", "d=ram,size=64M", "--events", "1G")
    client = connect(daemon)
    write(client, 0, b"first" + bytes(507))
    while ask(daemon, "/v1/events")["next"] < 250_000:
        daemon.cli("load", daemon.uri("d"), "--depth", "64", "--time", "1s")
    write(client, 0, b"last" + bytes(508))
    now = ask(daemon, "/v1/events")
    found = ask(daemon, "/v1/events", after=0, op="write")
    assert (found["next"], found["forgotten"]) == (now["next"], 0)
    assert len(found["zios"]) == 2 and found["next"] > 2
    rest = ask(daemon, "/v1/events", after=0, op="write", limit=1)
    assert rest["zios"] == found["zios"][:1]
    assert ask(daemon, "/v1/events", after=rest["next"], op="write")["zios"] == found["zios"][1:]
