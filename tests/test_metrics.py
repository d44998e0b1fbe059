"""The text of the metrics must have the same figures as the API, and every program that reads it must understand them
in the same way.
"""

import math
import os

import pytest
from conftest import BINARY, eventually, requires, run
from scraping import LE, api, layout, samples, scrape, scraped, value  # noqa: F401 (a fixture)
from timed import Client

GROWING = ("_total", "_bucket", "_count", "_sum")
NASTY = """-D 1ms --client 'uid=a"b\\c*' --name odd"""


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


def test_buckets_are_exact(scraped):
    """The count at each boundary `le` must be exactly the sum of dashpot's fine buckets up to that boundary."""
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
            below = sum(
                bucket["count"] for bucket in read[kind]["buckets"] if (bucket["to_ns"] or math.inf) <= le * 1e9
            )
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
        return {
            dict(labels)["rule"] for name, labels in samples(scrape(scraped)[1]) if name == "dashpot_rule_held_total"
        }

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
