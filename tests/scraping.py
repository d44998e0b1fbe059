"""Scrapes of a daemon's metrics for tests, and the boundaries of dashpot's histograms."""

import json
import math
import urllib.request

import pytest
from conftest import HANG_LIMIT, run

OPEN_METRICS = "application/openmetrics-text"
# The boundaries that Prometheus sees, in seconds.
LE = [2.0**power for power in range(-20, 6)]


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


def root_32(number):
    """The largest integer whose 32nd power is not above `number`."""
    low, high = 0, 1 << (number.bit_length() // 32 + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**32 <= number else (low, middle - 1)
    return low


def layout():
    """The upper bounds of dashpot's buckets in nanoseconds, from their definition."""
    scaled = 10 ** (9 * 32)
    bounds = {root_32(scaled << k if k >= 0 else scaled >> -k) for k in range(-30 * 32, 11 * 32 + 1)}
    for k in range(43):
        bounds |= {(unit << k) - 1 for unit in (1, 10**3, 10**6, 10**9)} | {10**6 << k}
    return sorted(bound for bound in bounds if bound < 1 << 42) + [math.inf]
