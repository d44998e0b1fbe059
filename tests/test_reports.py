"""The reports: their formats are those of the tools that they are named after, no I/O is missing, and each
has a JSON form.
"""

import json
import re
import signal

import pytest
from conftest import BINARY, eventually, run
from timed import Client

IOLATENCY_HEADER = "  >=(ms) .. <(ms)   : I/O      |Distribution                          |"
IOLATENCY_ROW = re.compile(r"^ *(\d+) -> (\d+) *: (\d+) *\|(#*) *\|$")
QUANTIZE_HEADER = "           value  ------------- Distribution ------------- count    "
QUANTIZE_ROW = re.compile(r"^ *(-?\d+) \|(@*) * (\d+) *$")
IOSTAT_COLUMNS = (
    "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz "
    "d/s dkB/s drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util"
)


@pytest.fixture
def client(daemon):
    return Client(daemon)


def watch(daemon, *words, until):
    """Starts a report, calls `until` once it has begun, and returns its output."""
    report = daemon.start(*words)
    first = report.stdout.readline()
    until()
    text = first + report.stdout.read()
    assert report.wait() == 0, report.stderr.read()
    return text


def rows(text, pattern):
    return [match.groups() for match in map(pattern.match, text.splitlines()) if match]


def has_begun(process):
    """Whether a report has begun: it catches SIGINT, which it does only after it has contacted the daemon."""
    with open(f"/proc/{process.pid}/status") as status:
        (caught,) = [int(line.split()[1], 16) for line in status if line.startswith("SigCgt:")]
    return caught >> (signal.SIGINT - 1) & 1


@pytest.mark.parametrize("words", [["quantize"], ["quantize", "--for", "60m"], ["iolatency", 3600], ["heatmap", 3600]])
def test_a_daemon_that_dies_is_noticed_within_an_interval(daemon, words):
    report = daemon.start(*words)
    eventually(lambda: has_begun(report), "the report has begun")
    daemon.abandon()
    _, errors = report.communicate(timeout=60)
    assert report.returncode == 1 and "no daemon" in errors, errors


def test_a_daemon_of_another_user_is_not_said_to_be_missing(daemon):
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", BINARY]
    for report in (["iolatency", 1, 1], ["status"]):
        error = run(*words, *report, code=1, env={"DASHPOT_API": f"unix:{daemon.api}"}).stderr
        assert "may not be used by this user" in error and "start one" not in error, error


# iolatency.


def test_iolatency_has_the_format_of_the_original(daemon, client):
    daemon.cli("inject", "d", "-D", "5ms")
    text = watch(daemon, "iolatency", "1", "2", until=lambda: client.many(60, 4))
    lines = text.splitlines()
    assert lines[0] == "Tracing block I/O. Output every 1 seconds."
    assert lines[1:3] == ["", IOLATENCY_HEADER]
    assert lines[-2:] == ["", "Ending tracing..."]
    assert lines.count(IOLATENCY_HEADER) == 2
    for line in lines[3:-2]:
        assert line in ("", IOLATENCY_HEADER) or IOLATENCY_ROW.match(line) and len(line) == len(IOLATENCY_HEADER), line
    found = rows(text, IOLATENCY_ROW)
    assert {(int(low), int(high)) for low, high, _, _ in found} <= {(0, 1), *((1 << i, 2 << i) for i in range(20))}
    for low, _high, count, _bar in found:
        assert int(low) >= 4 or count == "0", "nothing finished early"


def test_iolatency_misses_nothing_that_is_slow(daemon, client):
    """iolatency must miss no slow I/O. The original tool forgets the I/Os in flight when an interval ends; if all I/Os
    took longer than an interval, it would count none of them.
    """
    daemon.cli("inject", "d", "-D", "1100ms")
    requests = []
    text = watch(daemon, "iolatency", "1", "4", until=lambda: requests.extend(client.read() for _ in range(20)))
    client.wait(*requests)
    counted = {int(low): int(count) for low, _, count, _ in rows(text, IOLATENCY_ROW) if count != "0"}
    assert all(low >= 1024 for low in counted)
    slow = [request for request in requests if request.latency < 2]
    assert sum(counted.values()) >= len(slow)


def test_iolatency_names_what_is_still_in_flight(daemon, client):
    daemon.cli("inject", "d", "--hang")
    client.read()
    eventually(lambda: daemon.rules()[1]["taken"] == 1)
    text = daemon.cli("iolatency", "1", "2").stderr
    assert re.search(r"^In flight: 1, the oldest for \d+\.\d+ s on d \(hung, rule 1\)\.$", text, re.MULTILINE)


def test_the_last_interval_names_what_it_did_not_see_end(daemon, client):
    """The last interval, which Ctrl-C ends, must name even young I/O, because no later interval can count
    it."""
    daemon.cli("inject", "d", "--hang")
    report = daemon.start("iolatency", "600")
    report.stdout.readline()
    client.read()
    eventually(lambda: daemon.rules()[1]["taken"] == 1)
    report.send_signal(signal.SIGINT)
    text, errors = report.communicate()
    assert report.returncode == 0, errors
    oldest = r"In flight: 1, the oldest for \d+\.\d+ s on d \(hung, rule 1\)\.\n"
    # On a busy host, the report adds a sentence on the time for which the host stopped dashpot.
    assert re.fullmatch(oldest + r"Interval: \d+\.\d+ s instead of 600 s\.( .*)?\n", errors), errors
    assert text.splitlines()[-2:] == ["", "Ending tracing..."]


def test_iostat_since_the_start_names_what_did_not_end(daemon, client):
    assert "In flight" not in daemon.cli("iostat").stdout
    daemon.cli("inject", "d", "--hang")
    client.read()
    eventually(lambda: daemon.rules()[1]["taken"] == 1)
    assert re.search(r"^In flight: 1, .* on d \(hung, rule 1\)\.$", daemon.cli("iostat").stdout, re.MULTILINE)


def test_iolatency_options(daemon, client):
    assert re.search(r"^\d\d:\d\d:\d\d:$", daemon.cli("iolatency", "-T", "1", "1").stdout, re.MULTILINE)
    assert daemon.cli("iolatency", "-Q", "1", "1").stdout.count(IOLATENCY_HEADER) == 1
    text = watch(daemon, "iolatency", "-d", "d", "-i", "*W*", "1", "1", until=lambda: client.many(5, 1))
    assert sum(int(count) for _, _, count, _ in rows(text, IOLATENCY_ROW)) == 0
    assert "e" in daemon.cli("iolatency", "-d", "e", "1", "1", code=1).stderr


def test_iolatency_as_json(daemon, client):
    daemon.cli("inject", "d", "-D", "1ms")
    text = watch(daemon, "iolatency", "1", "3", "--json", until=lambda: None)
    intervals = [json.loads(line) for line in text.splitlines()]
    assert len(intervals) == 3
    assert all(interval["elapsed_ns"] > 0 and interval["rows"] for interval in intervals)


def counted(text):
    """The counts of the non-empty rows, by the lower bound of each row."""
    return {int(low): int(count) for low, _, count, _ in rows(text, IOLATENCY_ROW) if count != "0"}


def test_iolatency_counts_what_outlasts_intervals_once(daemon, client):
    daemon.cli("inject", "d", "-D", "2.5s")
    report = daemon.start("iolatency", "1")
    report.stdout.readline()
    client.wait(*[client.read() for _ in range(3)])
    report.send_signal(signal.SIGINT)
    text, errors = report.communicate()
    assert counted(text) == {2048: 3}
    ages = [float(age) for age in re.findall(r"^In flight: 3, the oldest for (\d+\.\d+) s on d", errors, re.MULTILINE)]
    assert ages and min(ages) >= 1, "named while they outlast intervals"


def values(text):
    """The number of I/Os (n) of each value in a table of percentiles."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.endswith("max"):
            break
    found = {}
    for line in lines:
        if not line:
            break
        *name, n, _p50, _p90, _p95, _p99, _p999, _max = line.split()
        found[" ".join(name)] = int(n)
    return found


def test_iolatency_by_what_a_daemon_tells_apart(serve):
    daemon = serve("-d", "a=ram,size=1M", "-d", "b=ram,size=1M")
    a, b = Client(daemon, "a"), Client(daemon, "b")
    who = {client["name"] for disk in ("a", "b") for client in daemon.disk(disk)["clients"]}
    for by, expected in (
        ("device", {"a": 30, "b": 20}),
        ("type", {"write": 30, "read": 20}),
        ("size", {"4K-8K": 50}),
        ("client", None),
    ):
        report = daemon.start("iolatency", "--by", by, "--percentiles", "600")
        report.stdout.readline()
        a.many(30, 4, a.write)
        b.many(20, 4)
        report.send_signal(signal.SIGINT)
        text, errors = report.communicate()
        assert report.returncode == 0 and "lost" not in errors, errors
        found = values(text)
        assert sum(found.values()) == 50, by
        assert found == expected if expected else set(found) <= who, (by, found)


def test_iolatency_by_what_a_daemon_does_not_know(daemon):
    for by in ("process", "cgroup"):
        error = daemon.cli("iolatency", "--by", by, "1", "1", code=2).stderr
        assert f"'{by}' is unknown here: dashpot's disks and simulations know their clients, not processes" in error


def test_a_breakdown_as_json_names_its_values(daemon, client):
    report = daemon.start("iolatency", "--by", "type", "--json", "100ms")
    report.stdout.readline()
    client.many(10, 2)
    report.send_signal(signal.SIGINT)
    text, errors = report.communicate()
    assert report.returncode == 0, errors
    intervals = [json.loads(line) for line in text.splitlines()]
    assert all(interval["by"] == "type" and interval["lost"] == 0 for interval in intervals)
    reads = [value for interval in intervals for value in interval["values"]]
    assert {value["value"] for value in reads} == {"read"}
    assert sum(value["latency"]["n"] for value in reads) == 10


def test_without_a_daemon_the_kernels_disks_are_offered(directory):
    error = run(BINARY, "iolatency", "1", "1", code=1, env={"DASHPOT_API": f"unix:{directory}/none"}).stderr
    assert "-k" in error and "dashpot serve" in error


# quantize.


def test_quantize_above_and_below_the_injection(daemon, client):
    """Measures above and below the injection. Figures that are measured below the injection do not contain it: the
    article on zinject fell into this trap.
    """
    daemon.cli("inject", "d", "-D", "10ms")
    report = daemon.start("quantize", "--layer", "disk", "--layer", "store", "--for", "2s")
    while report.poll() is None:
        client.many(8, 4)
    text, errors = report.communicate()
    assert report.returncode == 0, errors
    above, below = text.split("\nstore, below the injection:\n")
    assert above.startswith("\ndisk, as its clients see it, with the injection:\n\nhistogram of latencies (us):\n")
    values = [[int(value) for value, _, count in rows(half, QUANTIZE_ROW) if count != "0"] for half in (above, below)]
    assert min(values[0]) >= 8192
    assert max(values[1]) < 8192
    n = [sum(int(count) for _, _, count in rows(half, QUANTIZE_ROW)) for half in (above, below)]
    # The report reads the two layers at slightly different times.
    assert abs(n[0] - n[1]) <= 8


def test_quantize_at_a_layer_that_is_not_served(daemon):
    refused = daemon.cli("quantize", "--layer", "volume", code=2).stderr
    assert "serves no volume; a lab with a pool has some" in refused


def test_quantize_has_the_layout_of_the_article(daemon, client):
    daemon.cli("inject", "d", "-D", "10ms")
    text = daemon_quantize(daemon, client, "--for", "2s")
    assert text.startswith("\nhistogram of latencies (us):\n\n")
    assert QUANTIZE_HEADER in text.splitlines()
    found = rows(text, QUANTIZE_ROW)
    assert found[0][2] == found[-1][2] == "0", "an empty row on either side"
    counts = {int(value): int(count) for value, _, count in found if count != "0"}
    assert min(counts) >= 8192, "nothing finished early"
    total = sum(counts.values())
    for _value, bar, count in found:
        assert len(bar) == (2 * 40 * int(count) + total) // (2 * total)
    lines = text.splitlines()
    figures = lines[lines.index("avg latency (us)   stddev (us)   iops   throughput (KB/s)") + 1]
    assert int(figures.split()[0]) >= 10_000


def daemon_quantize(daemon, client, *words):
    """Runs quantize beside a load of the same duration."""
    report = daemon.start("quantize", *words)
    while report.poll() is None:
        client.many(8, 4)
    text, errors = report.communicate()
    assert report.returncode == 0, errors
    return text


def test_quantize_by_disk(serve):
    daemon = serve("-d", "a=ram,size=1M", "-d", "b=ram,size=1M")
    text = daemon_quantize(daemon, Client(daemon, "b"), "--by", "disk", "--for", "1s")
    assert text.splitlines().count(QUANTIZE_HEADER) == 2
    assert re.search(r"^DISK +avg latency \(us\)", text, re.MULTILINE)


def test_quantize_of_one_operation(daemon, client):
    text = daemon_quantize(daemon, client, "--op", "write", "--for", "1s")
    assert [count for _, _, count in rows(text, QUANTIZE_ROW)] == ["0", "0", "0"]


def test_quantize_as_json(daemon, client):
    report = json.loads(daemon_quantize(daemon, client, "--for", "1s", "--json"))
    counted = sum(row["count"] for row in report["total"]["rows"])
    assert counted > 0 and report["elapsed_ns"] >= 10**9


# iostat.


def test_iostat_has_the_columns_of_sysstat(daemon, client):
    daemon.cli("inject", "d", "-D", "5ms")
    text = watch(daemon, "iostat", "-x", "1", "2", until=lambda: client.many(100, 4, client.write))
    tables = [line for line in text.splitlines() if line.startswith("Device")]
    assert tables and all(" ".join(line.split()) == IOSTAT_COLUMNS for line in tables)
    columns = IOSTAT_COLUMNS.split()
    disks = [dict(zip(columns, line.split())) for line in text.splitlines() if line.startswith("d ")]
    assert len(disks) == len(tables)
    busy = [disk for disk in disks if float(disk["w/s"]) > 0]
    assert busy and all(float(disk["w_await"]) >= 5 for disk in busy)
    assert all(float(disk["r/s"]) == 0 for disk in disks)


def test_iostat_as_json(daemon, client):
    text = watch(daemon, "iostat", "-x", "1", "2", "--json", until=lambda: None)
    for line in text.splitlines():
        (disk,) = json.loads(line)
        assert disk["device"] == "d" and {"reads", "writes", "mean_in_flight", "busy_percent"} <= disk.keys()


# list and status.


def test_list_as_a_table_and_as_json(daemon, client):
    daemon.cli("inject", "d", "-D", "2ms:4", "--name", "base")
    client.many(20, 2)
    table = daemon.cli("list", "--wide").stdout
    for title in ("matched", "held", "overrun", "late", "achieved", "backlog"):
        assert title in table.lower()
    (rule,) = daemon.json("list")
    assert (rule["id"], rule["name"], rule["disk"], rule["matched"]) == (1, "base", "d", 20)
    assert rule["held"] + rule["overrun"] == rule["injected"] == 20


def test_status_says_what_is_served_and_who_is_there(daemon, client):
    text = daemon.cli("status").stdout
    assert "d" in text and str(daemon.nbd) in text and "uid=" in text
    (disk,) = daemon.json("status")["disks"]
    assert (disk["name"], disk["size_bytes"], disk["store"]) == ("d", 64 << 20, "ram")
    assert disk["uris"] == [daemon.uri("d")]
    assert sum(client["connections"] for client in disk["clients"]) == 1


def test_status_shows_where_the_oldest_zios_wait(daemon, client):
    daemon.cli("inject", "d", "-D", "60m:1")
    for _ in range(3):
        client.read()
    eventually(lambda: daemon.rules()[1]["matched"] == 3)
    assert "held" in daemon.cli("status", "--inflight").stdout
    oldest = daemon.disk()["oldest"]
    assert [zio["wait"] for zio in oldest] == ["held"] * 3
    assert [zio["rule"] for zio in oldest] == [1] * 3
    assert oldest[0]["age_ns"] >= oldest[2]["age_ns"]


def test_status_waits_until_the_daemon_is_there(directory, serve):
    serve("-d", "d=ram,size=1M").cli("status", "--wait", "5s")


def test_doctor_answers_without_a_daemon(directory):
    text = run(BINARY, "doctor").stdout.lower()
    for word in ("wake", "cpu", "nbd", "attach", "path:"):
        assert word in text, word
    json.loads(run(BINARY, "doctor", "--json").stdout)


# Statistics from a daemon's counters.

COUNTED = [
    "disk.ops",
    "disk.bytes[op]",
    "disk.ops[op=write]",
    "disk.latency[op=write][device]",
    "disk.ops[device!=b][client]",
    "disk.bytes[op!=read][size]",
    "disk.errors",
    "disk.errors[op=read][client]",
    "disk.ops[op=read][type=r*][error=*]",
]


def test_what_the_counters_know_is_exact_although_no_event_is_remembered(serve, tmp_path):
    lab = tmp_path / "lab.toml"
    disks = "".join(f'[disk.{name}]\nstore = "ram"\nsize = "4M"\n' for name in "ab")
    lab.write_text(disks + '[serve]\nevents = "0"\n')
    daemon = serve(str(lab))
    daemon.cli("inject", "b", "-e", "EIO", "-T", "read", "--every", "7")
    daemon.cli("inject", "a", "-e", "EIO", "-T", "read", "--every", "5")
    names = [*COUNTED, "disk.ops[offset]"]
    live = {name: daemon.start("stat", name, "--json", "1") for name in names}
    for report in live.values():
        assert json.loads(report.stdout.readline())["count"] == 0
    a, b = Client(daemon, "a"), Client(daemon, "b")
    a.many(100, 8)
    a.many(60, 4, a.write)
    b.many(70, 4)
    b.many(8, 2, lambda offset: b.write(offset, 65536))
    told = {}
    for name, report in live.items():
        report.send_signal(signal.SIGINT)
        text, errors = report.communicate(timeout=60)
        assert report.returncode == 0, errors
        told[name] = [json.loads(line) for line in text.splitlines()]

    def sums(name, figure):
        values = {}
        for one in told[name]:
            assert one["lost"] == 0, name
            for value in one.get("values", [{"value": "all", "count": one["count"], "bytes": one["bytes"]}]):
                values[value["value"]] = values.get(value["value"], 0) + value[figure]
        return values

    assert sums("disk.ops", "count") == {"all": 238}
    reads = (100 - 20 + 70 - 10) * 4096
    assert sums("disk.bytes[op]", "bytes") == {"read": reads, "write": 60 * 4096 + 8 * 65536}
    assert sums("disk.ops[op=write]", "count") == {"all": 68}
    assert sums("disk.latency[op=write][device]", "count") == {"a": 60, "b": 8}
    [of_a] = sums("disk.ops[device!=b][client]", "count").values()
    assert of_a == 160
    assert sums("disk.bytes[op!=read][size]", "count") == {"4K-8K": 60, "64K-128K": 8}
    assert sums("disk.errors", "count") == {"all": 30} and sums("disk.errors", "bytes") == {"all": 0}
    assert sum(sums("disk.errors[op=read][client]", "count").values()) == 30
    assert sums("disk.ops[op=read][type=r*][error=*]", "count") == {"all": 30}
    # The offsets of I/Os come only from events. For the dropped events they are lost, and the report must say so.
    assert sum(one["lost"] for one in told["disk.ops[offset]"]) == 238


def test_only_the_selected_operation_is_said_to_be_in_flight(daemon, client):
    daemon.cli("inject", "d", "--hang")
    client.read(), client.read(), client.write()
    eventually(lambda: daemon.rules()[1]["taken"] == 3)
    for condition, in_flight in [("op=read", 2), ("op=write", 1), ("op=flush", 0), ("device=e", 0), ("error=*", 0)]:
        [line] = daemon.cli("stat", f"disk.ops[{condition}]", "100ms", "1", "--json").stdout.splitlines()
        told = json.loads(line)["in_flight"]
        assert (told["zios"], told["oldest_ns"] is not None) == (in_flight, in_flight > 0), condition
    client.close()
