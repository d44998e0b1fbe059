"""Metrics: a real Prometheus reads dashpot's own numbers, the queries of the dashboard and the alerts return
results, and no scraper can harm the daemon."""

import asyncio
import http.client
import json
import math
import os
import pathlib
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from conftest import BINARY, HANG_LIMIT, ROOT, eventually, requires, run
from kernel import loop_in_memory, takes_a_kernel
from timed import Client

MONITORING = ROOT / "monitoring"
OPEN_METRICS = "application/openmetrics-text"
GROWING = ("_total", "_bucket", "_count", "_sum")
LE = [2.0 ** power for power in range(-20, 6)]
NASTY = """-D 1ms --client 'a"b\\c*' --name odd"""


def url_of(daemon):
    return json.loads(daemon.ready.read_text())["metrics"]


def scrape(daemon, accept=OPEN_METRICS):
    request = urllib.request.Request(url_of(daemon), headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=HANG_LIMIT) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def samples(text):
    """Samples by name and labels, as another project's parser reads them."""
    parser = pytest.importorskip(
        "prometheus_client.openmetrics.parser", reason="python3-prometheus-client is missing: make deps"
    )
    families = parser.text_string_to_metric_families(text)

    def key(sample):
        labels = dict(sample.labels)
        if "le" in labels:
            labels["le"] = float(labels["le"])
        return sample.name, frozenset(labels.items())

    return {key(sample): sample.value for family in families for sample in family.samples}


def value(found, metric, /, **labels):
    return found[metric, frozenset(labels.items())]


def api(daemon, path):
    """The API's answer, over its unix socket."""
    answer = run("curl", "-sf", "--unix-socket", daemon.api, f"http://localhost{path}")
    return json.loads(answer.stdout)


@pytest.fixture
def scraped(serve):
    return serve("-d", "d=ram,size=64M", "-d", "tank/foo.a-b=null,size=64M", "--metrics", "tcp:127.0.0.1:0")


# The text.

def test_both_formats_are_offered(scraped):
    kind, text = scrape(scraped)
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert text.endswith("# EOF\n")
    kind, plain = scrape(scraped, accept="*/*")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    assert "# EOF" not in plain
    bare = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(bare) == len([line for line in plain.splitlines() if not line.startswith("#")])


@requires("promtool")
def test_promtool_finds_no_fault(scraped):
    scraped.cli("inject", "d", "-D", "1ms")
    Client(scraped).many(10, 2)
    checked = run("promtool", "check", "metrics", stdin=scrape(scraped, accept="*/*")[1])
    assert (checked.stdout, checked.stderr) == ("", "")


def test_another_parser_reads_what_the_api_says(scraped):
    scraped.cli("inject", "d", "-D", "2ms", "--name", "slow")
    client = Client(scraped)
    client.many(30, 4)
    client.many(20, 4, client.write)
    client.wait(client.flush())
    found = samples(scrape(scraped)[1])
    for disk in api(scraped, "/v1/disks"):
        name = disk["name"]
        for op in disk["ops"]:
            labels = {"disk": name, "op": op["op"]}
            assert value(found, "dashpot_disk_operations_total", **labels) == op["completed"]
            assert value(found, "dashpot_disk_bytes_total", **labels) == op["bytes"]
            assert value(found, "dashpot_disk_errors_total", **labels) == op["failed"]
        assert value(found, "dashpot_disk_in_flight", disk=name) == 0
        assert value(found, "dashpot_disk_failed", disk=name) == 0
    assert value(found, "dashpot_disk_operations_total", disk="d", op="read") == 30
    rule = {"disk": "d", "rule": "1", "name": "slow"}
    assert value(found, "dashpot_rule_held_total", **rule) == 50
    assert value(found, "dashpot_rule_requested_seconds_total", **rule) == pytest.approx(50 * 0.002)
    achieved = value(found, "dashpot_rule_achieved_seconds_total", **rule)
    late = value(found, "dashpot_rule_lateness_seconds_sum", **rule)
    assert achieved == pytest.approx(50 * 0.002 + late)


def root_32(number):
    """The largest integer whose 32nd power is not above `number`."""
    low, high = 0, 1 << (number.bit_length() // 32 + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle ** 32 <= number else (low, middle - 1)
    return low


def layout():
    """The upper bounds of dashpot's buckets in nanoseconds, from their definition."""
    scaled = 10 ** (9 * 32)
    bounds = {root_32(scaled << k if k >= 0 else scaled >> -k) for k in range(-30 * 32, 11 * 32 + 1)}
    for k in range(43):
        bounds |= {(unit << k) - 1 for unit in (1, 10 ** 3, 10 ** 6, 10 ** 9)} | {10 ** 6 << k}
    return sorted(bound for bound in bounds if bound < 1 << 42) + [math.inf]


def test_buckets_are_exact(scraped):
    """Each `le` counts exactly the I/Os in dashpot's fine buckets up to it."""
    scraped.cli("inject", "d", "-D", "lognormal=1ms..20ms")
    client = Client(scraped)
    client.many(400, 64)
    # The total latency of an I/O that waits for a suspended disk exceeds its disk latency.
    scraped.cli("suspend", "d")
    late = client.read()
    eventually(lambda: scraped.disk()["in_flight"] == 1)
    scraped.cli("resume", "d")
    client.wait(late)
    found = samples(scrape(scraped)[1])
    (read,) = [op for op in api(scraped, "/v1/disks/d/latency")["ops"] if op["op"] == "read"]
    bounds = layout()
    assert len(bounds) == 1306
    assert {bucket["to_ns"] or math.inf for op in ("disk", "total") for bucket in read[op]["buckets"]} <= set(bounds)
    for metric, kind in (("disk_latency", "disk"), ("disk_total_latency", "total"), ("disk_lateness", "lateness")):
        name, labels = f"dashpot_{metric}_seconds", {"disk": "d", "op": "read"}
        for le in LE:
            below = sum(bucket["count"] for bucket in read[kind]["buckets"] if (bucket["to_ns"] or math.inf) <= le * 1e9)
            assert value(found, f"{name}_bucket", le=le, **labels) == below, (metric, le)
        assert value(found, f"{name}_bucket", le=math.inf, **labels) == read[kind]["count"]
        assert value(found, f"{name}_count", **labels) == read[kind]["count"]
        total = int(read[kind]["sum_ns"]) / 1e9
        assert value(found, f"{name}_sum", **labels) == pytest.approx(total, rel=1e-12)


def test_what_grows_never_falls(scraped):
    scraped.cli("inject", "d", "-D", "1ms")
    client = Client(scraped)
    client.many(20, 4)
    first = samples(scrape(scraped)[1])
    client.many(20, 4)
    second = samples(scrape(scraped)[1])
    growing = {key for key in first if key[0].endswith(GROWING)}
    assert len(growing) > 200
    fallen = {key for key in growing if second[key] < first[key]}
    assert not fallen
    assert value(second, "dashpot_disk_operations_total", disk="d", op="read") == 40


def test_series_of_a_rule_end_with_it_and_its_id_is_not_used_again(scraped):
    client = Client(scraped)

    def rules():
        return {dict(labels)["rule"] for name, labels in samples(scrape(scraped)[1]) if name == "dashpot_rule_held_total"}

    scraped.cli("inject", "d", "-D", "1ms")
    client.many(10, 2)
    assert rules() == {"1"}
    scraped.cli("clear", "1")
    assert rules() == set()
    scraped.cli("inject", "d", "-D", "1ms")
    found = samples(scrape(scraped)[1])
    assert rules() == {"2"}
    assert value(found, "dashpot_rule_held_total", disk="d", rule="2", name="") == 0
    assert value(found, "dashpot_disk_operations_total", disk="d", op="read") == 10


def test_labels_are_escaped(serve):
    daemon = serve("-d", "tank/foo.a-b=ram,size=64M", "-r", NASTY, "--metrics", "tcp:127.0.0.1:0")
    (rule,) = api(daemon, "/v1/rules")
    assert '"' in rule["rule"] and "\\" in rule["rule"]
    found = samples(scrape(daemon)[1])
    labels = {"disk": "tank/foo.a-b", "rule": "1", "name": "odd", "words": rule["rule"]}
    assert value(found, "dashpot_rule_info", **labels) == 1


def test_clients_are_told_apart(scraped):
    first, second = Client(scraped), Client(scraped, "tank/foo.a-b")
    first.many(30, 4)
    second.many(10, 2, second.write)
    load = run(BINARY, "load", scraped.uri("d"), "--time", "100ms", "--json")
    assert load.returncode == 0
    found = samples(scrape(scraped)[1])
    of_clients = {}
    for (name, labels), number in found.items():
        labels = dict(labels)
        if name == "dashpot_client_operations_total" and labels["op"] in ("read", "write"):
            of_clients.setdefault((labels["disk"], labels["op"]), {})[labels["client"]] = number
            of = {key: labels[key] for key in ("disk", "client", "op")}
            assert value(found, "dashpot_client_latency_seconds_count", **of) == number
    mine = f"uid={os.getuid()} pid={os.getpid()}"
    assert of_clients["d", "read"][mine] == 30 and of_clients["tank/foo.a-b", "write"] == {mine: 10}
    assert len(of_clients["d", "read"]) == 2
    assert sum(of_clients["d", "read"].values()) == value(found, "dashpot_disk_operations_total", disk="d", op="read")
    assert value(found, "dashpot_events_dropped_total", disk="d") == 0


def test_what_is_in_flight_is_seen_before_it_ends(scraped):
    scraped.cli("inject", "d", "--hang")
    client = Client(scraped)
    client.read()

    def oldest():
        found = samples(scrape(scraped)[1])
        waits = value(found, "dashpot_disk_oldest_in_flight_seconds", disk="d")
        return waits > 0.1 and value(found, "dashpot_disk_in_flight", disk="d")

    assert eventually(oldest) == 1
    rule = {"disk": "d", "rule": "1", "name": ""}
    assert value(samples(scrape(scraped)[1]), "dashpot_rule_in_flight", **rule) == 1
    client.close()
    eventually(lambda: scraped.rules()[1]["aborted"] == 1)
    found = samples(scrape(scraped)[1])
    assert value(found, "dashpot_rule_in_flight", **rule) == 0
    assert value(found, "dashpot_rule_aborted_total", **rule) == 1


def test_suspension_is_seen(scraped):
    scraped.cli("suspend", "d")
    found = samples(scrape(scraped)[1])
    assert value(found, "dashpot_disk_suspended", disk="d") == 1
    assert value(found, "dashpot_disk_suspended", disk="tank/foo.a-b") == 0


# Scrapers that could harm the daemon.

@pytest.mark.parametrize("method, path, status", [
    ("GET", "/", 404), ("GET", "/metrics/", 404), ("GET", "/v1/status", 404), ("GET", "/healthz", 404),
    ("POST", "/metrics", 405), ("DELETE", "/metrics", 405), ("PUT", "/metrics", 405),
    ("POST", "/v1/reset", 404), ("HEAD", "/metrics", 200),
])
def test_it_can_only_be_read(scraped, method, path, status):
    address = urllib.parse.urlsplit(url_of(scraped)).netloc
    connection = http.client.HTTPConnection(address, timeout=HANG_LIMIT)
    connection.request(method, path, body=b"{}" if method in ("POST", "PUT") else None)
    assert connection.getresponse().status == status


@pytest.mark.parametrize("host, status", [
    ("evil.example", 403), ("evil.example:80", 403), ("localhost", 200), ("192.0.2.7:9464", 200), ("lab", 200),
])
def test_pages_of_other_sites_cannot_read_it(serve, host, status):
    daemon = serve("-d", "d=null,size=1M", "--metrics", "tcp:127.0.0.1:0", "--allow-host", "lab")
    request = urllib.request.Request(url_of(daemon), headers={"Host": host})
    try:
        assert urllib.request.urlopen(request, timeout=HANG_LIMIT).status == status
    except urllib.error.HTTPError as refused:
        assert refused.code == status and "--allow-host evil.example" in refused.read().decode()


def connect(daemon):
    address = urllib.parse.urlsplit(url_of(daemon))
    return socket.create_connection((address.hostname, address.port), timeout=HANG_LIMIT)


def test_a_thousand_scrapes_at_once_are_all_answered(scraped):
    address = urllib.parse.urlsplit(url_of(scraped))

    async def one():
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {OPEN_METRICS}\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer

    async def all_of_them():
        return await asyncio.gather(*(one() for _ in range(1_000)))

    peak = memory(scraped, "VmHWM")
    answers = asyncio.run(asyncio.wait_for(all_of_them(), HANG_LIMIT))
    assert all(answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"# EOF\n") for answer in answers)
    # A text for each scraper would take twice as much.
    assert memory(scraped, "VmHWM") - peak < 500 * len(answers[0]) / 1024
    open_files = pathlib.Path(f"/proc/{scraped.pid}/fd")
    eventually(lambda: len(list(open_files.iterdir())) < 100, "the connections are closed")


def memory(daemon, what):
    """Memory in KiB."""
    status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    return int(re.search(rf"^{what}:\s+(\d+) kB", status, re.MULTILINE).group(1))


def test_scrapers_that_do_not_read_or_speak_keep_nobody_out(scraped):
    silent = [connect(scraped) for _ in range(100)]
    for one in silent[50:]:
        one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    halves = connect(scraped)
    halves.sendall(b"GET /met")
    noise = connect(scraped)
    noise.sendall(bytes(range(256)) * 64)
    assert scrape(scraped)[1].endswith("# EOF\n")
    client = Client(scraped)
    client.many(10, 2)
    for one in [*silent, halves, noise]:
        one.close()


def test_a_socket_that_a_killed_daemon_left_is_replaced(serve, directory):
    path = directory / "metrics.sock"
    daemon = serve("-d", "d=ram,size=64M", "--metrics", f"unix:{path}")
    assert json.loads(daemon.ready.read_text())["metrics"] == f"unix:{path}"
    refused = daemon.cli(
        "serve", "-d", "e=ram,size=64M", "--nbd", "unix:-", "--api", "unix:-", "--metrics", f"unix:{path}", code=1
    )
    assert "listens at" in refused.stderr and "--metrics unix:PATH" in refused.stderr
    daemon.abandon()
    assert path.exists()
    again = serve("-d", "d=ram,size=64M", "--metrics", f"unix:{path}")
    text = run("curl", "-sf", "--unix-socket", path, "http://localhost/metrics").stdout
    assert 'dashpot_disk_failed{disk="d"} 0' in text
    again.stop()
    assert not path.exists()


def test_an_address_in_use_is_refused(scraped):
    address = urllib.parse.urlsplit(url_of(scraped)).netloc
    refused = scraped.cli(
        "serve", "-d", "e=ram,size=64M", "--nbd", "unix:-", "--api", "unix:-", "--metrics", f"tcp:{address}", code=1
    )
    assert f"--metrics tcp:{address}: cannot listen there" in refused.stderr


def test_a_lab_file_names_the_place(serve, directory):
    lab = directory / "lab.toml"
    path = directory / "m.sock"
    lab.write_text(f'[disk.d]\nstore = "ram"\nsize = "64M"\n[serve]\nmetrics = "unix:{path}"\n')
    daemon = serve(str(lab))
    assert f"metrics  unix:{path}" in daemon.output()
    assert "dashpot_build_info" in run("curl", "-sf", "--unix-socket", path, "http://localhost/metrics").stdout


# The kernel's disks.

@pytest.fixture
def loop():
    """A loop device over memory."""
    with loop_in_memory(16) as device:
        yield device.path


@pytest.fixture
def observer():
    """Starts `observe`."""
    running = []

    def start(*words):
        process = subprocess.Popen(
            [BINARY, "observe", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        running.append(process)
        said = process.stderr.readline()
        assert process.stdout.readline(), f"the kernel's disks cannot be watched: {said}{process.stderr.read()}"
        return process, said.split()[-1]

    yield start
    for process in running:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG_LIMIT)


@takes_a_kernel
@requires("prometheus")
def test_the_kernels_disks_are_scraped(loop, observer, prometheus):
    process, url = observer(loop, "200ms", "--json", "--metrics", "tcp:127.0.0.1:0")
    server = prometheus(urllib.parse.urlsplit(url).netloc)
    name = loop.removeprefix("/dev/")
    reads = f'dashpot_kernel_disk_operations_total{{device="{name}",op="read"}}'
    before = eventually(lambda: [server.number(reads)] if server.number(reads) is not None else None, "a scrape")[0]
    run("dd", f"if={loop}", "of=/dev/null", "bs=4k", "count=1000", "iflag=direct")
    eventually(lambda: server.number(reads) == before + 1_000, "all reads")
    assert server.number(reads.replace("operations_total", "latency_seconds_count")) == before + 1_000
    assert server.number("dashpot_kernel_events_lost_total") == 0
    queries = [(title, query) for title, query in dashboard() if "dashpot_kernel" in query]
    assert len(queries) > 6
    for title, query in queries:
        numbers = [number for number in server.query(query).values() if not math.isnan(number)]
        assert numbers and min(numbers) >= 0, f"{title}: {query}"
    with urllib.request.urlopen(url, timeout=HANG_LIMIT) as answer:
        there = set(re.findall(r"^\w+", answer.read().decode(), re.MULTILINE))
    files = "".join((MONITORING / name).read_text() for name in ("alerts.yml", "grafana-dashboard.json"))
    assert set(re.findall(r"\bdashpot_kernel_\w+", files)) <= there
    process.send_signal(signal.SIGINT)
    lines = process.communicate(timeout=HANG_LIMIT)[0].splitlines()
    intervals = [json.loads(line) for line in lines]
    counted = sum(interval["devices"][0]["latency"]["n"] for interval in intervals)
    assert counted >= 1_000 and process.returncode == 0


@requires("promtool")
@takes_a_kernel
def test_promtool_finds_no_fault_in_the_kernels(loop, observer):
    _process, url = observer(loop, "200ms", "--json", "--metrics", "tcp:127.0.0.1:0")
    with urllib.request.urlopen(url, timeout=HANG_LIMIT) as answer:
        checked = run("promtool", "check", "metrics", stdin=answer.read().decode())
    assert (checked.stdout, checked.stderr) == ("", "")


@takes_a_kernel
def test_observe_puts_its_socket_away(loop, observer, directory):
    path = directory / "o.sock"
    process, _url = observer(loop, "200ms", "--json", "--metrics", f"unix:{path}")
    text = run("curl", "-sf", "--unix-socket", path, "http://localhost/metrics").stdout
    assert "dashpot_kernel_events_lost_total" in text and path.exists()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=HANG_LIMIT)
    assert not path.exists()


@pytest.mark.parametrize("words, code, why", [
    (("no-such-disk",), 1, "is not a block device"),
    (("1", "vda"), 2, "'vda' is not a number of reports"),
    (("1", "2", "vda"), 2, "devices come first"),
    (("0",), 2, "is not an interval"),
    (("-1",), 2, "'-1'"),
    (("vda", "1", "-1"), 2, "'-1'"),
])
def test_observe_refuses_what_it_does_not_understand(words, code, why):
    refused = run(BINARY, "observe", *words, code=code)
    assert why in refused.stderr and "tip" not in refused.stderr


# A real Prometheus.

class Prometheus:
    """A server with a directory of its own, which scrapes every second."""

    def __init__(self, directory, targets):
        self.directory = directory
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        config = directory / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(MONITORING / "alerts.yml")],
            "scrape_configs": [{"job_name": "dashpot", "static_configs": [{"targets": targets}]}],
        }))
        self.log = open(directory / "prometheus.log", "w+")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory}/data",
             f"--web.listen-address={self.address}", "--log.level=warn"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT,
        )
        eventually(lambda: self.is_ready(), "Prometheus is ready")

    def is_ready(self):
        assert self.process.poll() is None, (self.directory / "prometheus.log").read_text()
        try:
            return urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=HANG_LIMIT).status == 200
        except OSError:
            return False

    def get(self, path, **options):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(options)}"
        try:
            with urllib.request.urlopen(url, timeout=HANG_LIMIT) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{options}: {error.read().decode()}") from error

    def query(self, expression):
        """The values of an expression now, by their labels."""
        found = self.get("query", query=expression)["result"]
        return {frozenset(one["metric"].items()): float(one["value"][1]) for one in found}

    def number(self, expression):
        """The only value of an expression, or None."""
        values = list(self.query(expression).values())
        assert len(values) <= 1, (expression, values)
        return values[0] if values else None

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.fixture
def prometheus(directory):
    servers = []

    def start(*targets):
        home = directory / "prometheus"
        home.mkdir()
        servers.append(Prometheus(home, targets))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def watched(scraped, prometheus):
    """A daemon whose disk takes 3 ms, or 40 ms for one read in ten, scraped before and after 600 reads."""
    scraped.cli("inject", "d", "-D", "3ms", "--name", "base")
    scraped.cli("inject", "d", "-D", "40ms", "--every", "10", "--name", "tail")
    server = prometheus(urllib.parse.urlsplit(url_of(scraped)).netloc)
    reads = 'dashpot_disk_operations_total{disk="d",op="read"}'
    eventually(lambda: server.number(reads) == 0, "a scrape before the load")
    client = Client(scraped)
    client.many(10, 2)
    # A client that was never scraped before has no rate.
    eventually(lambda: server.number('dashpot_client_operations_total{op="read"}') == 10, "a scrape with the client")
    client.many(590, 8)
    eventually(lambda: server.number(reads) == 600, "a scrape after the load")
    return scraped, server


def bucket_around(seconds):
    """The edges of the bucket that a latency is in."""
    edges = [0.0, *LE, math.inf]
    above = next(at for at, edge in enumerate(edges) if seconds <= edge and at)
    return edges[above - 1], edges[above]


def percentile(buckets, share):
    """The percentile in seconds, by nearest rank: the upper edge of the fine bucket."""
    seen = 0
    rank = math.ceil(share * sum(bucket["count"] for bucket in buckets))
    for bucket in buckets:
        seen += bucket["count"]
        if seen >= rank:
            return bucket["to_ns"] / 1e9
    raise AssertionError("no buckets")


@requires("prometheus")
def test_prometheus_reads_what_dashpot_counts(watched):
    daemon, server = watched
    assert server.number('up{job="dashpot"}') == 1
    assert server.number('dashpot_disk_latency_seconds_count{disk="d",op="read"}') == 600
    assert server.number('dashpot_disk_bytes_total{disk="d",op="read"}') == 600 * 4096
    for rule in daemon.rules().values():
        labels = f'{{rule="{rule["id"]}",name="{rule["name"]}"}}'
        for counter in ("matched", "held", "overrun", "late", "beaten"):
            assert server.number(f"dashpot_rule_{counter}_total{labels}") == rule[counter], (rule["id"], counter)
    assert server.number('sum(dashpot_rule_held_total{disk="d"})') == 600


@requires("prometheus")
def test_percentiles_of_prometheus_are_dashpots_within_a_bucket(watched):
    daemon, server = watched
    (read,) = [op for op in api(daemon, "/v1/disks/d/latency")["ops"] if op["op"] == "read"]
    for share in (0.5, 0.9, 0.95, 0.99, 0.999):
        own = percentile(read["disk"]["buckets"], share)
        low, high = bucket_around(own)
        theirs = server.number(
            f'histogram_quantile({share}, dashpot_disk_latency_seconds_bucket{{disk="d",op="read"}})'
        )
        # The tail begins at 0.9, so one rank more or less gives another bucket.
        assert low / 2 <= theirs <= high * 2 if share == 0.9 else low <= theirs <= high, (share, own, theirs)
    assert server.number('histogram_quantile(0.5, dashpot_disk_latency_seconds_bucket{disk="d",op="read"})') < 0.004
    assert server.number('histogram_quantile(0.99, dashpot_disk_latency_seconds_bucket{disk="d",op="read"})') > 0.03
    for rule in daemon.rules().values():
        for share in (0.5, 0.99):
            own = rule["lateness"]["p50_ns" if share == 0.5 else "p99_ns"]
            low, high = bucket_around(own / 1e9)
            theirs = server.number(
                f'histogram_quantile({share}, dashpot_rule_lateness_seconds_bucket{{rule="{rule["id"]}"}})'
            )
            assert low / 2 <= theirs <= high * 2, (rule["id"], share, own, theirs)


def dashboard():
    """Title and expression of each query, with its variables filled in."""
    board = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            assert target["datasource"]["uid"] == "${DS}"
            expression = target["expr"].replace("$__rate_interval", "1m")
            yield panel["title"], re.sub(r"\$(instance|disk|device)\b", ".*", expression)


def test_the_dashboard_shows_the_disks_that_are_chosen():
    """A user finds the slow one of ten disks by choosing it: every panel about disks shows only the chosen ones."""
    board = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    for name in ("disk", "device"):
        assert variables[name]["multi"] and variables[name]["includeAll"], name
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            for metric, labels in re.findall(r"\b(dashpot_\w+)\{([^}]*)\}", target["expr"]):
                if re.match("dashpot_(disk|client|rule)_", metric):
                    assert 'disk=~"$disk"' in labels, (panel["title"], metric)
                if metric.startswith("dashpot_kernel_disk_"):
                    assert 'device=~"$device"' in labels, (panel["title"], metric)


@requires("prometheus")
def test_every_query_of_the_dashboard_returns_something(watched):
    _daemon, server = watched
    queries = [(title, query) for title, query in dashboard() if "dashpot_kernel" not in query]
    # The prober of a shard reads once a second under load.
    always = [(title, query) for title, query in queries if "probe" not in query and "steal" not in query]
    assert len(always) > 20
    for title, query in always:
        found = server.query(query)
        # Without I/Os there is no percentile.
        numbers = [number for number in found.values() if not math.isnan(number)]
        assert numbers and min(numbers) >= 0, f"{title}: {query}: {found}"
    for _title, query in dashboard():
        server.query(query)

    def number(title, at=0, **labels):
        query = [query for panel, query in queries if panel == title][at]
        of = [number for key, number in server.query(query).items() if frozenset(labels.items()) <= key]
        assert len(of) == 1, (query, labels, of)
        return of[0]

    assert number("IOPS", op="read") > 0
    assert number("Requested and achieved", 0, name="base") == pytest.approx(0.003)
    assert number("Requested and achieved", 1, name="tail") >= 0.040
    assert 0.002 < number("Latency percentiles", 0, disk="d", op="read") < 0.004
    assert 0.03 < number("Latency percentiles", 1, disk="d", op="read") < 0.0625
    assert number("In flight", 0, disk="d") == 0
    heat = server.query([query for panel, query in queries if panel == "Latency"][0])
    cells = {float(dict(key)["le"]): number for key, number in heat.items()}
    assert cells[0.001953125] == 0 < cells[0.00390625] < cells[0.0625] <= cells[math.inf]


@requires("prometheus")
def test_the_alerts_are_evaluated_and_quiet(watched):
    _daemon, server = watched

    def rules():
        (group,) = server.get("rules")["groups"]
        evaluated = all(rule["health"] == "ok" for rule in group["rules"])
        return evaluated and {rule["name"]: rule["state"] for rule in group["rules"]}

    states = eventually(rules, "all rules are evaluated")
    assert len(states) == 10
    assert {states[name] for name in ("DashpotDown", "DashpotShardFailed", "DashpotStoreFaulted")} == {"inactive"}


@requires("prometheus")
def test_an_alert_fires_for_what_hangs(scraped, prometheus):
    """The alert's threshold of 30 s is lowered to 0.5 s."""
    server = prometheus(urllib.parse.urlsplit(url_of(scraped)).netloc)
    scraped.cli("inject", "d", "--hang")
    client = Client(scraped)
    client.read()
    (expression,) = re.findall(r"expr: (dashpot_disk_oldest.*) > 30\n", (MONITORING / "alerts.yml").read_text())
    found = eventually(lambda: server.query(f"{expression} > 0.5"), "the alert")
    assert [dict(key)["disk"] for key in found] == ["d"]


@requires("promtool")
@pytest.mark.parametrize("words", [
    ("check", "rules", "alerts.yml"), ("test", "rules", "alerts-test.yml"), ("check", "config", "prometheus.yml"),
])
def test_promtool_accepts_the_files(words):
    done = subprocess.run(["promtool", *words], cwd=MONITORING, capture_output=True, text=True, timeout=HANG_LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


def test_what_the_files_ask_for_is_there(scraped):
    """If a metric were renamed, a panel would stay empty, or an alert silent."""
    scraped.cli("inject", "d", "-D", "1ms")
    Client(scraped).many(10, 2)
    there = {name for name, _ in samples(scrape(scraped)[1])}
    files = "".join((MONITORING / name).read_text() for name in ("alerts.yml", "grafana-dashboard.json"))
    asked = set(re.findall(r"\bdashpot_\w+", files))
    # A prober may have no reading yet.
    missing = {name for name in asked - there if not name.startswith("dashpot_kernel") and "probe" not in name}
    assert not missing - {"dashpot_host_cpu_steal_ratio"}
