"""Leases: a rule that nobody renews is cleared, and what it hangs goes on."""

import json
import urllib.request

import pytest
from conftest import BINARY, eventually, run
from timed import Client

MINUTE = 60 * 10**9


def test_a_rule_is_cleared_when_its_lease_lapses(daemon):
    client = Client(daemon)
    armed = daemon.cli("inject", "d", "--hang", "--name", "stall", "--lease", "300ms").stdout
    assert "its lease lapses in " in armed
    read = client.read()
    assert client.wait(read).error == 0
    eventually(lambda: not daemon.rules(), "a rule that has lapsed")
    assert json.loads(daemon.cli("proof", "stall", "--json", code=None).stdout)


def test_a_renewed_rule_stays(daemon):
    daemon.cli("inject", "d", "-D", "1ms", "-D", "2ms", "--name", "slow", "--lease", "1m")
    daemon.cli("inject", "d", "-D", "1ms", "--lease", "200ms")
    assert "rule 1: its lease lapses in 3600s" in daemon.cli("renew", "slow", "--lease", "60m").stdout
    # Without --lease, the lease has the length of the last one.
    renewed = daemon.json("renew", "slow", "1")
    assert [rule["id"] for rule in renewed] == [1, 2, 1]
    assert all(59 * MINUTE < rule["lapses_in_ns"] <= 60 * MINUTE for rule in renewed)
    eventually(lambda: list(daemon.rules()) == [1, 2], "the rule with the short lease has gone")
    daemon.cli("renew", "2", "--lease", "200ms")
    eventually(lambda: list(daemon.rules()) == [1], "a renewal can shorten a lease")
    assert "rule 1: its lease lapses in " in daemon.cli("list").stdout
    # An update leaves the lease as it is.
    daemon.cli("update", "1", "-D", "5ms")
    assert daemon.rules()[1]["lapses_in_ns"] > 59 * MINUTE


def test_a_rule_without_a_lease_gets_one_only_if_told(daemon):
    daemon.cli("inject", "d", "-D", "1ms")
    refused = daemon.cli("renew", "1", code=1).stderr
    assert "rule 1 has no lease: 'dashpot renew --lease TIME' gives it one" in " ".join(refused.split())
    assert daemon.rules()[1]["lapses_in_ns"] is None
    daemon.cli("renew", "1", "--lease", "1ms")
    eventually(lambda: not daemon.rules(), "a rule that has lapsed")
    daemon.cli("renew", "1", code=1)


@pytest.mark.parametrize("arguments", [["-r", "d -D 1ms --lease 1m"], ["lab.toml"]])
def test_the_rules_of_a_lab_have_no_lease(directory, arguments):
    (directory / "lab.toml").write_text('[disk.d]\nstore = "ram"\nsize = "1M"\nrules = ["-D 1ms --lease 1m"]\n')
    places = [directory / word if word == "lab.toml" else word for word in arguments]
    refused = run(BINARY, "serve", *places, "-d", "d=ram,size=1M", code=None)
    assert refused.returncode in (1, 2) and "without a lease" in refused.stderr


def test_a_held_connection_is_a_lease_already(daemon):
    refused = daemon.cli("inject", "d", "-D", "1ms", "--lease", "1m", "--", "true", code=1)
    assert "without a lease" in " ".join(refused.stderr.split())


def test_over_tcp_a_rule_has_a_lease(serve):
    daemon = serve("-d", "d=ram,size=1M", "-r", "-D 1ms", "--api", "tcp:127.0.0.1:0")
    where = json.loads(daemon.ready.read_text())["api"]
    base, token = where.split("?token=")

    def post(rule):
        request = urllib.request.Request(
            f"{base.rstrip('/')}/v1/disks/d/rules",
            json.dumps({"rule": rule}).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)[0]["lapses_in_ns"]

    assert 14 * MINUTE < post("-D 1ms") <= 15 * MINUTE
    assert 59 * MINUTE < post("-D 1ms --lease 60m") <= 60 * MINUTE
