"""`load` reports its figures, and does not succeed if the disk has not served the load."""

import json

from conftest import BINARY, eventually, run


def test_a_load_that_is_served_succeeds(daemon):
    (read,) = json.loads(run(BINARY, "load", daemon.uri("d"), "--time", "100ms", "--json").stdout)["ops"]
    assert read["op"] == "read" and read["errors"] == 0 < read["latency"]["n"]


def test_a_load_whose_requests_all_fail_fails_after_its_table(daemon):
    daemon.cli("inject", "d", "-e", "EIO")
    done = run(BINARY, "load", daemon.uri("d"), "--time", "100ms", code=1)
    titles, read = done.stdout.splitlines()
    assert titles.split()[:2] == ["op", "n"] and read.split()[0] == "read"
    count = read.split()[1]
    assert f"all {count} requests to read were answered with an error" in done.stderr


def test_a_load_whose_requests_fail_in_part_succeeds(daemon):
    daemon.cli("inject", "d", "-e", "EIO", "--first", "1")
    (read,) = json.loads(run(BINARY, "load", daemon.uri("d"), "--time", "100ms", "--json").stdout)["ops"]
    assert read["errors"] == 1 < read["latency"]["n"]


def test_a_load_whose_daemon_goes_away_says_what_came_before(daemon):
    load = daemon.start("load", daemon.uri("d"), "--depth", "4")
    eventually(lambda: daemon.disk()["ops"][0]["completed"] > 100)
    daemon.abandon()
    text, errors = load.communicate()
    assert load.returncode == 1
    titles, read = text.splitlines()
    assert read.split()[0] == "read" and int(read.split()[1]) > 100
    assert errors == "dashpot: the load ended early: the server closed the connection\n"


def test_a_load_that_is_never_answered_fails_and_names_how_many(daemon):
    daemon.cli("inject", "d", "--hang")
    done = run(BINARY, "load", daemon.uri("d"), "--depth", "3", "--time", "100ms", "--json", code=1)
    assert json.loads(done.stdout)["unanswered"] == 3
    assert "3 requests were not answered" in done.stderr
    # The requests no longer wait anywhere, so the remedy must not send the user to look for them.
    assert "'dashpot list' shows the rules that held them" in done.stderr


def test_rates_are_of_the_time_in_which_the_load_asked(daemon):
    daemon.cli("inject", "d", "--hang", "--every", "50")
    done = run(BINARY, "load", daemon.uri("d"), "--time", "200ms", "--json", code=1)
    report = json.loads(done.stdout)
    assert "1 request was not answered" in done.stderr
    # The 49 requests before the hung request took some time, too, which the report includes.
    assert report["ops"][0]["latency"]["n"] == 49 and report["elapsed_ns"] >= 200_000_000
    assert report["ops"][0]["iops"] <= 49 / 0.2


def test_a_depth_that_no_shard_has_room_for_is_refused(daemon):
    done = run(BINARY, "load", daemon.uri("d"), "--depth", "1000001", code=2)
    assert "'1000001' requests in flight: give at most 1,000,000" in done.stderr


def test_a_load_whose_last_replies_come_after_its_time_succeeds(daemon):
    daemon.cli("inject", "d", "-D", "500ms")
    done = run(BINARY, "load", daemon.uri("d"), "--depth", "3", "--time", "100ms", "--json")
    report = json.loads(done.stdout)
    assert report["unanswered"] == 0 and report["ops"][0]["latency"]["n"] == 3
