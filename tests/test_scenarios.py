"""Scenarios: rules in time, on a real daemon. What a scenario did is undone however it ends."""

import csv
import itertools
import json
import queue
import re
import signal
import threading
import time

import pytest
from conftest import BINARY, ROOT, eventually, run
from timed import Client

LONG = """
format = 1
about = "a test"
[[step]]
inject = "-D 1ms"
label = "slow"
[[step]]
suspend = true
[[step]]
after = "60m"
"""


@pytest.fixture
def scenario(directory):
    """Writes the file of a scenario, and returns its path."""

    def write(text, name="s.toml"):
        path = directory / name
        path.write_text(text)
        return str(path)

    return write


def steps(text):
    return f'format = 1\nabout = "a test"\n{text}'


def running(daemon):
    return [run for run in daemon.json("scenario", "list")["runs"] if run["state"] == "running"]


def last(daemon):
    return daemon.json("scenario", "list")["runs"][-1]


def is_undone(daemon, disk="d"):
    return not daemon.rules() and daemon.disk(disk)["suspended"] is None


def test_the_steps_are_made_in_their_order_and_undone_at_the_end(daemon, scenario):
    text = steps("""
        [[step]]
        inject = "-D 10ms --name slow"
        [[step]]
        after = "100ms"
        update = "slow"
        rule = "-D 20ms -T read"
        [[step]]
        repeat = 3
        [[step.step]]
        after = "1ms"
        suspend = true
        [[step.step]]
        after = "1ms"
        resume = true
        [[step]]
        mark = "the end"
    """)
    done = daemon.cli("scenario", "run", scenario(text), "d").stdout
    assert "a test" in done and "is done after" in done and "with 9 steps made" in done
    made = last(daemon)
    assert made["state"] == "done" and made["error"] is None and made["next_in_ns"] is None
    expected = [
        "slow: inject -D 10ms -T read,write,zero",
        "slow: update -D 20ms -T read",
        *["suspend", "resume"] * 3,
        "mark the end",
    ]
    assert [step["step"] for step in made["steps"]] == expected
    assert [step["number"] for step in made["steps"]] == list(range(1, 10))
    times = [step["at_ns"] for step in made["steps"]]
    assert times == sorted(times) and times[1] >= 100e6 and times[-1] >= 106e6
    assert is_undone(daemon)


def test_speed_divides_the_times_between_steps(daemon, scenario):
    text = steps('[[step]]\nmark = "a"\n[[step]]\nafter = "10m"\nmark = "b"\n')
    daemon.cli("scenario", "run", scenario(text), "d", "--speed", "1000")
    first, second = last(daemon)["steps"]
    assert second["at_ns"] >= 600e6 > first["at_ns"]


def test_the_first_steps_are_in_force_when_the_command_begins(daemon, scenario):
    listed = daemon.cli("scenario", "run", scenario(LONG), "d", "--", BINARY, "list", "--json").stdout
    assert [rule["rule"] for rule in json.loads(listed)] == ["-D 1ms -T read,write,zero"]
    assert last(daemon)["state"] == "stopped" and is_undone(daemon)


def test_the_exit_code_is_that_of_the_command(daemon, scenario):
    daemon.cli("scenario", "run", scenario(LONG), "d", "--", "sh", "-c", "exit 7", code=7)
    assert is_undone(daemon)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_end_of_its_client_undoes_it(daemon, scenario, number):
    text = LONG.replace("[[step]]\nsuspend", '[[step]]\ninject = "--hang"\n[[step]]\nsuspend')
    client = Client(daemon)
    process = daemon.start("scenario", "run", scenario(text), "d")
    eventually(lambda: len(daemon.rules()) == 2, "the steps at the beginning")
    eventually(lambda: daemon.disk()["suspended"], "a suspended disk")
    read = client.read()
    process.send_signal(number)
    process.communicate()
    eventually(lambda: is_undone(daemon), "an undone scenario")
    assert client.wait(read).error == 0
    assert last(daemon)["state"] == "stopped"
    # Others' rules and another run are as before.
    daemon.cli("inject", "d", "-D", "1ms")
    daemon.cli("scenario", "run", scenario(steps('[[step]]\nmark = "a"\n')), "d")
    assert len(daemon.rules()) == 1


def test_a_disk_has_one_scenario_at_a_time(serve, scenario):
    daemon = serve("-d", "d=ram,size=1M", "-d", "e=ram,size=1M", "-d", "f=ram,size=1M")
    path = scenario(LONG)
    process = daemon.start("scenario", "run", path, "d", "e")
    eventually(lambda: running(daemon) and len(daemon.rules()) == 2, "a scenario")
    refused = " ".join(daemon.cli("scenario", "run", path, "f", "e", code=1).stderr.split())
    assert f"the scenario '{path}' runs on disk 'e', and a disk has one at a time" in refused
    assert "'dashpot scenario stop e' ends it" in refused
    daemon.cli("scenario", "run", path, "f", "--", "true")
    assert running(daemon)[0]["disks"] == ["d", "e"]
    assert "was stopped" in daemon.cli("scenario", "stop", "e").stdout
    assert process.wait() == 1 and "was stopped" in process.communicate()[0]
    assert is_undone(daemon, "d") and is_undone(daemon, "e")
    assert "no scenario runs on disk 'e'" in daemon.cli("scenario", "stop", "e", code=1).stderr


def test_a_step_that_fails_ends_and_undoes_it(daemon, scenario):
    """The rule of the second step has a name that another rule has taken meanwhile."""
    daemon.cli("inject", "d", "-D", "1ms", "--name", "taken")
    text = LONG.replace('after = "60m"', 'after = "1ms"\ninject = "-D 2ms --name taken"')
    failed = daemon.cli("scenario", "run", scenario(text), "d", code=1)
    assert "s.toml:9: the name 'taken' is taken by rule 1" in " ".join(failed.stderr.split())
    assert last(daemon)["state"] == "failed" and "taken" in last(daemon)["error"]
    assert [rule["name"] for rule in daemon.rules().values()] == ["taken"]
    assert daemon.disk()["suspended"] is None
    failed = daemon.cli("scenario", "run", scenario(text), "d", "--", "sh", "-c", "sleep 0.2", code=None)
    assert failed.returncode == 1 and "the scenario failed" in failed.stderr


def test_a_step_that_does_not_suit_its_disk_is_refused_before_the_first(daemon, scenario):
    for step, why in [
        ('inject = "-D 1ms --range 1T..2T"', "--range begins at 1T"),
        ('inject = "-D 1ms --name d"', "'d' is the name of a disk"),
        ("tune = { zfs_delay_scale = 1000 }", "disk 'd' belongs to no pool"),
        ('tune = { pool = "x", zfs_delay_scale = 1000 }', "no pool 'x'"),
        ('inject = "-D 1ms --client exe=pg"', "--client"),
        ('frob = "x"', "unknown field `frob`"),
    ]:
        refused = daemon.cli("scenario", "run", scenario(LONG + f"[[step]]\n{step}\n"), "d", code=1)
        assert why in " ".join(refused.stderr.split()), refused.stderr
    assert daemon.json("scenario", "list")["runs"] == []
    refused = daemon.cli("scenario", "run", scenario("format = 9\n"), "d", code=1).stderr
    assert "format 9" in refused and "only format 1" in " ".join(refused.split())
    assert "no disk 'x'" in daemon.cli("scenario", "run", scenario(LONG), "x", code=1).stderr
    assert "named twice" in daemon.cli("scenario", "run", scenario(LONG), "d", "d", code=1).stderr


def test_a_user_may_clear_its_rules_but_it_clears_no_others(daemon, scenario):
    daemon.cli("inject", "d", "-D", "1ms")
    daemon.cli("suspend", "d")
    process = daemon.start("scenario", "run", scenario(LONG), "d")
    eventually(lambda: len(daemon.rules()) == 2, "the scenario's rule")
    daemon.cli("clear", "2")
    daemon.cli("scenario", "stop", "d")
    process.communicate()
    assert list(daemon.rules()) == [1]
    # The disk was suspended already, so the scenario has not suspended it.
    assert daemon.disk()["suspended"] is not None
    daemon.cli("resume", "d")


def test_reset_stops_it(daemon, scenario):
    process = daemon.start("scenario", "run", scenario(LONG), "d")
    eventually(lambda: running(daemon), "a scenario")
    daemon.cli("reset")
    assert process.wait() == 1
    assert last(daemon)["state"] == "stopped" and is_undone(daemon)
    process.communicate()


def test_what_it_cut_is_served_again(serve, scenario):
    daemon = serve("-d", "d=lossy:ram,size=1M")
    text = steps('[[step]]\ncrash = "off"\nkeep = "none"\n[[step]]\nafter = "60m"\n')
    process = daemon.start("scenario", "run", scenario(text), "d")
    eventually(lambda: daemon.disk()["off"], "a disk that is off")
    process.kill()
    process.communicate()
    eventually(lambda: not daemon.disk()["off"], "a disk that is served again")
    # What somebody else has restarted is not cut again.
    process = daemon.start("scenario", "run", scenario(text), "d")
    eventually(lambda: daemon.disk()["off"], "a disk that is off")
    daemon.cli("crash", "d", "--restart")
    client = Client(daemon)
    daemon.cli("scenario", "stop", "d")
    process.communicate()
    assert client.wait(client.read()).error == 0


def test_a_tunable_is_restored_unless_somebody_else_has_set_it(serve, scenario):
    daemon = serve()
    text = steps("""
        [[step]]
        tune = { zfs_delay_scale = "1us", zfs_vdev_async_write_max_active = 3 }
        [[step]]
        tune = { pool = "tank", zfs_delay_scale = "2us" }
        [[step]]
        after = "60m"
    """)

    def value(name):
        values = {tunable["name"]: tunable["words"] for tunable in daemon.json("get", "tank")}
        return values[name]

    before = value("zfs_delay_scale"), value("zfs_vdev_async_write_max_active")
    process = daemon.start("scenario", "run", scenario(text), "c2t1d0", "c2t2d0")
    eventually(lambda: value("zfs_delay_scale") == "2us", "the scenario's value")
    daemon.cli("set", "tank", "zfs_vdev_async_write_max_active=5")
    daemon.cli("scenario", "stop", "c2t2d0")
    process.communicate()
    assert value("zfs_delay_scale") == before[0]
    assert value("zfs_vdev_async_write_max_active") != before[1]


def test_the_built_in_scenarios_are_listed_shown_and_run(daemon, scenario):
    # The list needs no daemon.
    without = json.loads(run(BINARY, "--api", "unix:/nowhere/api.sock", "scenario", "list", "--json").stdout)
    assert without["runs"] == []
    names = [known["name"] for known in without["built_in"]]
    assert {"fis-sustained", "fis-increasing", "fis-intermittent", "fis-decreasing"} < set(names)
    assert {"brown-out", "fail-slow", "firmware-stall", "dying-disk"} < set(names)
    for name in names:
        text = daemon.cli("scenario", "show", name).stdout
        assert text.startswith("# ")
        daemon.cli("scenario", "run", scenario(text), "d", "--", "true")
        daemon.cli("scenario", "run", name, "d", "--speed", "1000", "--", "true")
        assert is_undone(daemon)
    assert "did you mean 'brown-out'?" in daemon.cli("scenario", "show", "brownout", code=1).stderr


SIMULATED = """
[disk.d]
store = "null"
size = "1G"
service = "200us"
[workload.w]
target = "d"
threads = 4
read = "100%"
"""


def test_a_simulation_makes_it_alike_each_time(directory, scenario):
    lab = directory / "lab.toml"
    lab.write_text(SIMULATED)
    sim = lambda *words: run(BINARY, "sim", lab, "--for", "10s", "--report", "iolatency 1", *words).stdout  # noqa: E731
    text = steps("""
        [[step]]
        inject = "-D 2ms~1ms"
        label = "slow"
        [[step]]
        after = "2s"
        update = "slow"
        rule = "-D 100ms"
        [[step]]
        after = "2s"
        inject = "--hang"
        label = "stall"
        [[step]]
        after = "1s"
        clear = "stall"
        [[step]]
        after = "2s"
    """)
    path = scenario(text)
    events = [directory / f"{number}.csv" for number in range(3)]
    first = sim("--scenario", path, "--events", events[0])
    assert first == sim("--scenario", f"{path} d", "--events", events[1])
    assert events[0].read_bytes() == events[1].read_bytes()
    sim("--scenario", path, "--events", events[2], "--seed", "2")
    assert events[0].read_bytes() != events[2].read_bytes()
    with events[0].open() as file:
        ios = [(int(row["issued_ns"]) / 1e9, int(row["ended_ns"]) / 1e9) for row in csv.DictReader(file)]

    def slowest(begin, end):
        return max(ended - issued for issued, ended in ios if begin <= issued < end)

    assert all(ended - issued >= 1e-3 for issued, ended in ios if issued < 2)
    assert slowest(0, 2) <= 3e-3 and slowest(2, 3.9) == pytest.approx(0.1)
    # What hangs is let go when the step clears its rule.
    assert all(ended >= 5 for issued, ended in ios if 4 <= issued < 5) and not any(4.2 < at[1] < 5 for at in ios)
    assert slowest(7.2, 10) == pytest.approx(200e-6)
    refused = run(BINARY, "sim", lab, "--scenario", "brownout", code=1).stderr
    assert "did you mean 'brown-out'?" in refused
    run(BINARY, "sim", lab, "--for", "1s", "--scenario", "fail-slow")


@pytest.mark.parametrize(
    "name, lasts, column", [("fis-increasing", "16m", 20), ("brown-out", "9m", 15), ("firmware-stall", "5m", 5)]
)
def test_a_picture_of_the_page_is_that_of_its_scenario(name, lasts, column, directory):
    picture = directory / "picture.svg"
    report = f"heatmap {column} --min 100us --max 100s --svg {picture}"
    run(BINARY, "sim", ROOT / "labs/scenarios.toml", "--for", lasts, "--scenario", name, "--report", report)
    assert f"(pictures/scenario-{name}.svg)" in (ROOT / "docs/scenarios.md").read_text()
    assert picture.read_text() == (ROOT / f"docs/pictures/scenario-{name}.svg").read_text()


def test_the_file_of_the_page_is_a_scenario_of_90_seconds(daemon, scenario):
    """At a speed of 1000 it ends at once, and the times of its steps are those that the page says."""
    (text,) = re.findall(r"^```toml\n(.*?)^```", (ROOT / "docs/scenarios.md").read_text(), re.DOTALL | re.MULTILINE)
    ended = json.loads(daemon.cli("scenario", "run", scenario(text), "d", "--speed", "1000", "--json").stdout)
    assert ended["state"] == "done" and ended["made"] == 9 and ended["age_ns"] >= 90e6


def rules_in_turn(rules):
    """The rules of I/Os that ended one after another, each turn once."""
    return [rule for rule, _ in itertools.groupby(rules)]


def test_a_daemon_and_a_simulation_make_it_in_the_same_order(daemon, directory, scenario):
    turns = "".join(
        f"""
        [[step]]
        inject = "-D {number}ms"
        label = "rule{number}"
        [[step]]
        after = "200ms"
        update = "rule{number}"
        rule = "-D {number}ms -T write"
        [[step]]
        after = "200ms"
        update = "rule{number}"
        rule = "-D {number}ms -T read"
        [[step]]
        after = "200ms"
        clear = "rule{number}"
        [[step]]
        after = "200ms"
    """
        for number in (1, 2, 3)
    )
    path = scenario(steps(turns))
    lab, events = directory / "lab.toml", directory / "events.csv"
    lab.write_text(SIMULATED.replace("threads = 4", "threads = 1"))
    run(BINARY, "sim", lab, "--for", "3s", "--scenario", path, "--events", events)
    with events.open() as file:
        simulated = rules_in_turn(row["rule"] for row in csv.DictReader(file))
    client = Client(daemon)
    snoop = daemon.start("snoop", "--json")
    lines = queue.Queue()
    reader = threading.Thread(target=lambda: [lines.put(line) for line in snoop.stdout])
    reader.start()
    eventually(lambda: client.wait(client.read()) and not lines.empty(), "the first I/O")
    process = daemon.start("scenario", "run", path, "d")
    while process.poll() is None:
        client.wait(client.read())
        # This paces the client; the result does not depend on it.
        time.sleep(0.002)
    assert process.wait() == 0
    process.communicate()
    snoop.send_signal(signal.SIGINT)
    snoop.wait()
    reader.join()
    told = [json.loads(line) for line in lines.queue]
    live = rules_in_turn(str(zio["rule"] or "") for zio in told)
    # A busy host may keep the client from reading in a turn of 200 ms, so only the order is the same.
    assert list(dict.fromkeys(live)) == list(dict.fromkeys(["", *simulated]))
    assert [rule for rule in simulated if rule] == ["1", "1", "2", "2", "3", "3"]
