"""A real Prometheus reads dashpot's own numbers, and the queries of the dashboard and the alerts return results."""

import json
import math
import re
import subprocess
import urllib.parse

import pytest
from conftest import HANG_LIMIT, eventually, requires
from prometheus import MONITORING, dashboard, prometheus  # noqa: F401 (a fixture)
from scraping import LE, api, samples, scrape, scraped, url_of  # noqa: F401 (a fixture)
from timed import Client


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
    # Prometheus computes a client's rate only from the first scrape of that client on.
    eventually(lambda: server.number('dashpot_client_operations_total{op="read"}') == 10, "a scrape with the client")
    client.many(590, 8)
    eventually(lambda: server.number(reads) == 600, "a scrape after the load")
    return scraped, server


def bucket_around(seconds):
    """The edges of the bucket of Prometheus to which a latency belongs."""
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
        # The reads of 40 ms begin at exactly this percentile (0.9), so a difference of one rank can lead to a far
        # bucket.
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


def test_the_dashboard_shows_the_disks_that_are_chosen():
    """Every panel about disks must show only the disks that the user has chosen, such as the slow one of ten disks."""
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
    # A shard's prober reads only once a second under load, so it may have no reading yet.
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
    assert len(states) == 14
    assert {states[name] for name in ("DashpotDown", "DashpotShardFailed", "DashpotStoreFaulted")} == {"inactive"}


@requires("prometheus")
def test_an_alert_fires_for_what_hangs(scraped, prometheus):
    """The alert must fire for I/O that hangs. For this test, the threshold of the alert is lowered from 30 s to 0.5 s."""
    server = prometheus(urllib.parse.urlsplit(url_of(scraped)).netloc)
    scraped.cli("inject", "d", "--hang")
    client = Client(scraped)
    client.read()
    (expression,) = re.findall(r"expr: (dashpot_disk_oldest.*) > 30\n", (MONITORING / "alerts.yml").read_text())
    found = eventually(lambda: server.query(f"{expression} > 0.5"), "the alert")
    assert [dict(key)["disk"] for key in found] == ["d"]


@requires("promtool")
@pytest.mark.parametrize(
    "words",
    [
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts-test.yml"),
        ("check", "config", "prometheus.yml"),
    ],
)
def test_promtool_accepts_the_files(words):
    done = subprocess.run(["promtool", *words], cwd=MONITORING, capture_output=True, text=True, timeout=HANG_LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


def test_what_the_files_ask_for_is_there(scraped):
    """Every metric that the dashboard and the alerts ask for must exist: otherwise a panel would stay empty,
    or an alert silent."""
    scraped.cli("inject", "d", "-D", "1ms")
    Client(scraped).many(10, 2)
    there = {name for name, _ in samples(scrape(scraped)[1])}
    files = "".join((MONITORING / name).read_text() for name in ("alerts.yml", "grafana-dashboard.json"))
    asked = set(re.findall(r"\bdashpot_\w+", files))
    # A shard's prober may have no reading yet.
    missing = {name for name in asked - there if not name.startswith("dashpot_kernel") and "probe" not in name}
    # Only a path disk has these, and test_path_waits.py reads them.
    of_paths = {"dashpot_disk_unheld_total", "dashpot_disk_interrupted_total"}
    assert not missing - {"dashpot_host_cpu_steal_ratio"} - of_paths
