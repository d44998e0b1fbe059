"""`check`: the expectations of a CI step, the observed values, and the exit statuses."""

import json
import os
import re
from xml.etree import ElementTree

import pytest
from conftest import BINARY, run
from timed import Client

WIDTH = 80


@pytest.fixture
def client(daemon):
    return Client(daemon)


def without_stops(text):
    """The text of a busy host, without the remarks about its stops."""
    return re.sub("; the host stopped dashpot for [^,]*, and no latency shows that wait", "", text)


def lines(text):
    """The verdict in each line. Checks that no line is too wide."""
    text = without_stops(text)
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    return [line.split(maxsplit=1)[0] for line in text.splitlines()]


def test_what_holds_and_what_does_not(daemon, client):
    """The exit status is 3 if any check fails, and the line of every check has the observed value."""
    daemon.cli("inject", "d", "-D", "3ms", "-T", "read", "--name", "slow")
    client.many(60, 4)
    held = ["d.read.p50 >= 3ms", "d.count == 60", "slow.held == 60", "rule(slow).achieved.p99 < 1m", "d.failed == 0"]
    printed = daemon.cli("check", *held).stdout
    assert lines(printed) == ["ok"] * 5
    assert "(n=60)" in printed.splitlines()[0] and printed.splitlines()[1].split()[-1] == "60"
    failed = daemon.cli("check", *held, "d.read.max < 1ns", "1.requested.max != 3ms", code=3).stdout
    assert lines(failed) == ["ok"] * 5 + ["FAIL"] * 2
    assert without_stops(failed).splitlines()[-1].split()[-2:] == ["3.00ms", "(n=60)"]
    (only,) = json.loads(daemon.cli("check", "--json", "slow.held > 60", code=3).stdout)
    assert (only["check"], only["holds"], only["count"]) == ("slow.held > 60", False, 60)


def test_no_data_does_not_hold(daemon):
    daemon.cli("inject", "d", "-D", "3ms", "-T", "flush", "--name", "slow")
    printed = daemon.cli("check", "d.flush.p99 < 1m", "slow.late == 0", "d.count == 0", code=3).stdout
    assert lines(printed) == ["FAIL", "FAIL", "ok"]
    assert "no flush seen" in printed and "nothing matched yet: -T flush" in printed


REFUSED = {
    "an unknown disk": (["x.p99 < 1ms"], "no disk, volume or rule 'x'"),
    "an unknown metric": (["d.p98 < 1ms"], "no metric 'p98' of a disk or volume: did you mean 'p90'?"),
    "a rule that is not written as one": (["x.held > 1"], "written rule(x)"),
    "a value without its unit": (["d.p99 < 30"], "'30' has no unit: did you mean 30ms?"),
    "no comparison": (["d.p99"], "compares nothing"),
}


@pytest.mark.parametrize("words, said", REFUSED.values(), ids=REFUSED)
def test_what_is_unknown_is_refused_before_the_command_starts(daemon, directory, words, said):
    ran = directory / "ran"
    refused = daemon.cli("check", *words, "--", "touch", ran, code=2)
    assert said in refused.stderr and not ran.exists()


def test_around_a_command(daemon, directory):
    """With a command, `check` counts only the command's I/O, and only the command writes to stdout. If the
    command fails, its exit status has precedence."""
    daemon.cli("load", daemon.uri("d"), "--depth", "4", "--time", "200ms")
    load = f"{BINARY} load '{daemon.uri('d')}' --depth 2 --time 300ms >&2; echo out"
    inject = f"{BINARY} inject d -D 2ms --name later -- sh -c"
    checks = ["d.read.p50 >= 2ms", "rule(later).held >= 10", "d.count < 100000"]
    command = ["sh", "-c", f'{inject} "$1"', "sh", load]
    done = daemon.cli("check", *checks, "--", *command)
    assert done.stdout == "out\n"
    outcomes = [line for line in done.stderr.splitlines() if line.startswith(("ok", "FAIL"))]
    assert [line.split()[0] for line in outcomes] == ["ok"] * 3, done.stderr
    failed = daemon.cli("check", "d.read.p50 < 1ns", "rule(never).held > 0", "--", "true", code=3)
    assert "no read seen" in failed.stderr and "no rule 'never' was armed" in failed.stderr
    daemon.cli("check", "d.count > 0", "--", "sh", "-c", "exit 9", code=9)
    daemon.cli("check", "d.count > 0", "--", "/nowhere/at/all", code=127)


def test_for_a_time(daemon, client):
    client.many(30, 1)
    printed = daemon.cli("check", "--for", "50ms", "d.count == 0", "d.p99 < 1m", code=3).stdout
    assert lines(printed) == ["ok", "FAIL"]


def test_without_a_daemon(directory):
    api = {"DASHPOT_API": f"unix:{directory}/none"}
    assert "no daemon" in run(BINARY, "check", "d.p99 < 1s", code=1, env=api).stderr
    assert "no daemon" in run(BINARY, "check", "d.p99 < 1s", "--", "true", code=125, env=api).stderr


def test_a_comparison_that_the_shell_took_is_explained(daemon, directory):
    command = f"cd {directory} && {BINARY} check d.p99 > 20ms"
    env = {"DASHPOT_API": f"unix:{daemon.api}"}
    refused = run("sh", "-c", command, code=2, env=env)
    assert "made the file '20ms': put the expression in quotes" in " ".join(refused.stderr.split())
    assert os.path.exists(directory / "20ms")


def test_of_a_run():
    """`run --check` judges the I/O of its command."""
    lab = ["-d", "db=ram,size=1M", "-r", "-D 2ms -T flush --name slow"]
    script = f"{BINARY} load $DASHPOT_URI --depth 1 --flush 50% --time 300ms >/dev/null"
    command = ["--", "sh", "-c", script]
    checks = ["--check", "db.flush.p50 >= 2ms", "--check", "slow.held > 0"]
    assert run(BINARY, "run", *lab, *checks, *command).stderr.splitlines()[-1].startswith("ok ")
    assert "FAIL" in run(BINARY, "run", *lab, "--check", "db.flush.p50 < 2ms", *command, code=3).stderr
    assert (
        "no disk, volume or rule 'dc'" in run(BINARY, "run", *lab, "--check", "dc.p99 < 2ms", *command, code=125).stderr
    )
    run(BINARY, "run", *lab, "--check", "db.p99 < 1ns", "--", "sh", "-c", "exit 5", code=5)


@pytest.mark.parametrize(
    "words, code",
    [
        (["check", "d.failed == 0"], 125),
        (["inject", "d", "-D", "1ms", "--name", "mine"], 0),
    ],
)
def test_a_daemon_that_was_started_again_while_a_command_ran(directory, serve, words, code):
    """If the daemon is started again while the command runs, `check` must say so: the new daemon's counters
    do not cover the time before, and it has other rules."""
    api = ["--api", f"unix:{directory}/api.sock"]
    daemon = serve("-d", "d=ram,size=1M", *api)
    daemon.api = directory / "api.sock"
    around = daemon.start(*words, "--", "sh", "-c", "echo runs; read line")
    assert around.stdout.readline() == "runs\n"
    daemon.abandon()
    again = serve("-d", "d=ram,size=1M", *api)
    again.api = directory / "api.sock"
    again.cli("inject", "d", "-D", "2ms", "--name", "others")
    _, errors = around.communicate("go on\n", timeout=60)
    assert around.returncode == code, errors
    assert "started again" in errors and "others" not in errors
    assert [rule["name"] for rule in again.rules().values()] == ["others"]


def reported(where):
    """The three files of a report: the summary, the test cases by name with their contents, and the page."""
    suite = ElementTree.parse(where / "junit.xml").getroot().find("testsuite")
    cases = {case.get("name"): [part.tag for part in case] for case in suite}
    assert [int(suite.get(word)) for word in ("tests", "failures", "skipped")] == [
        len(cases),
        *(sum(word in parts for parts in cases.values()) for word in ("failure", "skipped")),
    ]
    return json.loads((where / "summary.json").read_text()), cases, (where / "report.md").read_text()


def test_a_report_of_run_for_a_pipeline(directory):
    """Each check and rule is a test case. In a step of GitHub Actions, failed checks become annotations, and the page
    becomes the step's summary. The exit status is the same as without a report.
    """
    where, summary = directory / "new/out", directory / "step"
    said = run(
        BINARY,
        "run",
        "-d",
        "db=ram,size=4M",
        "-r",
        "-D 2ms -T write",
        "-r",
        "-D 1ms -T flush",
        "--check",
        "db.write.p50 >= 2ms",
        "--check",
        "db.flush.p99 < 1s",
        "--report",
        where,
        "--",
        "sh",
        "-c",
        'nbdcopy --flush /bin/true "$DASHPOT_URI" 2>/dev/null; head -c 4096 /dev/zero | nbdcopy - "$DASHPOT_URI"',
        code=None,
        env={"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": "true"},
    )
    found, cases, page = reported(where)
    assert (found["schema"], found["succeeded"], found["command"][0]) == (1, True, "sh")
    held = [check["holds"] for check in found["checks"]]
    assert held[0] and said.returncode == (0 if all(held) else 3), said.stderr
    assert cases["db.write.p50 >= 2ms"] == ["system-out"] and len(cases) == 5
    assert {rule["rule"]: rule["held"] > 0 for rule in found["rules"]}["-D 2ms -T write"]
    writes = next(one for one in found["disks"] if one["op"] == "write")
    assert writes["n"] > 0 and writes["p50_ns"] >= 2_000_000
    assert summary.read_text() == page and "| ok | `db.write.p50 >= 2ms` |" in page
    assert said.stderr.count("::error title=dashpot check::") == held.count(False)


def test_a_report_of_a_failed_command_and_of_no_command(daemon, directory):
    where = directory / "out"
    daemon.cli("check", "d.write.p99 < 1s", "--report", where, "--", "sh", "-c", "exit 7", code=7)
    found, cases, page = reported(where)
    assert (found["succeeded"], cases["sh -c exit 7"], cases["d.write.p99 < 1s"]) == (False, ["failure"], ["failure"])
    assert "no write seen" in page and "**failed**" in page
    daemon.cli("check", "d.count == 0", "--report", where)
    assert reported(where)[1] == {"d.count == 0": ["system-out"]}


def test_a_report_has_how_the_command_ended_and_the_rules_that_were_cleared(directory):
    where = directory / "out"
    script = 'head -c 4096 /dev/zero | nbdcopy - "$DASHPOT_URI" && "$0" clear slow >&2; exit 7'
    rules = ["-r", "-D 1ms -T write --name slow", "-r", "-D 1ms -T read"]
    run(BINARY, "run", "-d", "db=ram,size=4M", *rules, "--report", where, "--", "sh", "-c", script, BINARY, code=7)
    found, cases, page = reported(where)
    assert found["status"] == 7 and found["duration_ns"] > 1_000_000 and "with status 7" in page
    assert [(rule["name"], rule["cleared"], rule["matched"] > 0) for rule in found["rules"]] == [
        ("slow", True, True),
        (None, False, False),
    ]
    assert cases["db: -D 1ms -T write (slow) (cleared)"] == ["system-out"]
    suite = ElementTree.parse(where / "junit.xml").getroot().find("testsuite")
    times = [float(part.get("time")) for part in (suite, suite.find("testcase"))]
    assert times[0] == times[1] == round(found["duration_ns"] / 1e9, 3)


def test_a_report_has_rules_from_before_a_reset_and_says_how_many_are_forgotten(directory):
    where = directory / "out"
    delays = " ".join(f"-D {ms}ms" for ms in range(1, 23))
    arm_and_clear = f'for i in 1 2 3; do "$0" inject db {delays} --name x$i >&2; "$0" clear all >&2; done'
    script = arm_and_clear + '; "$0" reset >&2; ! "$0" proof x3'
    ended = run(BINARY, "run", "-d", "db=ram,size=1M", "--report", where, "--", "sh", "-c", script, BINARY)
    found, cases, page = reported(where)
    assert [rule["id"] for rule in found["rules"]] == list(range(3, 67)) and found["rules_forgotten"] == 2
    said = "2 cleared rules are not listed"
    assert cases["forgotten"] == ["skipped"] and said in page and said in ended.stderr


def test_a_report_that_cannot_be_written_is_refused_before_the_command_starts(directory):
    (directory / "file").write_text("")
    ran = directory / "ran"
    refused = run(
        BINARY, "run", "-d", "db=ram,size=1M", "--report", directory / "file/out", "--", "touch", ran, code=125
    )
    assert "--report" in refused.stderr and "may write" in refused.stderr and not ran.exists()
