"""`observe --metrics`: the metrics of the kernel's disks, as Prometheus and promtool read them."""

import json
import math
import re
import signal
import socket
import subprocess
import urllib.parse
import urllib.request

import pytest
from conftest import BINARY, HANG_LIMIT, eventually, requires, run
from kernel import loop_in_memory, takes_a_kernel
from prometheus import MONITORING, dashboard, prometheus  # noqa: F401 (a fixture)


@pytest.fixture
def loop():
    """A loop device over memory."""
    with loop_in_memory(megabytes=16) as device:
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


@pytest.mark.parametrize(
    "words, code, why",
    [
        (("no-such-disk",), 1, "is not a block device"),
        (("1", "vda"), 2, "'vda' is not a number of reports"),
        (("1", "2", "vda"), 2, "devices come first"),
        (("0",), 2, "is not an interval"),
        (("-1",), 2, "'-1'"),
        (("vda", "1", "-1"), 2, "'-1'"),
    ],
)
def test_observe_refuses_what_it_does_not_understand(words, code, why):
    refused = run(BINARY, "observe", *words, code=code)
    assert why in refused.stderr and "tip" not in refused.stderr


@takes_a_kernel
def test_a_supervisor_is_told_when_the_disks_are_observed(observer, directory, monkeypatch):
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(str(directory / "notify"))
    told.settimeout(HANG_LIMIT)
    monkeypatch.setenv("NOTIFY_SOCKET", str(directory / "notify"))
    process, url = observer("200ms", "--json", "--metrics", "tcp:127.0.0.1:0")
    assert told.recv(64) == b"READY=1" and process.poll() is None
    assert urllib.request.urlopen(url, timeout=HANG_LIMIT).status == 200
