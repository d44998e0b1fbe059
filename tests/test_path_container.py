"""Path disks in a container: dashpot is the entry point, with the capabilities and the profile of system calls that
Docker gives by default. Images often start as root and run their program as another user."""

import json
import signal

import pytest
from conftest import eventually
from containers import DASHPOT, can_run_containers, container  # noqa: F401 (a fixture)
from test_path import ORPHAN, PYTHON, SYNCS

pytestmark = can_run_containers
# Drops root as gosu and setpriv do: changes the user, and then executes another program.
DROPS = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "--inh-caps=-all"]
CALLS = 25


def entry_point(*rules, disk="wal=path:/work"):
    words = [word for rule in rules for word in ("-r", rule)]
    return [DASHPOT, "run", "-d", disk, *words, "--"]


def listed(container):  # noqa: F811
    (rule,) = json.loads((container.work / "rules.json").read_text())
    return rule


LISTS = ["sh", "-c", '"$@"; status=$?; "$DASHPOT" list --json >/work/rules.json; exit $status', "sh"]


@pytest.mark.parametrize("drops", [[], DROPS], ids=["root", "drops"])
def test_every_call_is_held(container, drops):  # noqa: F811
    out, err = container.run(*entry_point("-D 20ms"), *LISTS, *drops, PYTHON, "-c", SYNCS, "/work/f", CALLS)
    lasted = [int(line) for line in out.split()]
    assert len(lasted) == CALLS and min(lasted) >= 20_000_000
    rule = listed(container)
    assert (rule["matched"], rule["held"]) == (CALLS, CALLS)
    assert err.startswith("dashpot: rule on ") and err.count("\n") == 1
    assert not list(container.processes())


@pytest.mark.parametrize("drops", [[], DROPS], ids=["root", "drops"])
def test_the_program_hears_the_error(container, drops):  # noqa: F811
    _, err = container.run(
        *entry_point("-e EIO --first 1"), *LISTS, *drops, PYTHON, "-c", SYNCS, "/work/f", CALLS, code=1
    )
    assert "[Errno 5]" in err
    assert listed(container)["matched"] == 1


@pytest.mark.parametrize("drops", [[], DROPS], ids=["root", "drops"])
def test_names_and_bytes_are_known(container, drops):  # noqa: F811
    """Tests the types of calls whose arguments lie in the memory of the program, which another user may not
    read."""
    program = "import os; os.close(os.open('/work/g', os.O_CREAT | os.O_RDWR)); os.rename('/work/g', '/work/h')"
    rules = ["-D 1ms -T open,rename"]
    container.run(*entry_point(*rules, disk="wal=path:/work,types=all"), *LISTS, *drops, PYTHON, "-c", program)
    # One of the three calls is the shell's, which opens the file for the list of the rules.
    assert listed(container)["matched"] == 3


@pytest.mark.parametrize("drops", [[], DROPS], ids=["root", "drops"])
def test_a_floor_is_synced_by_dashpot(container, drops):  # noqa: F811
    out, err = container.run(
        *entry_point("-D 20ms -T sync --mode floor"), *LISTS, *drops, PYTHON, "-c", SYNCS, "/work/f", CALLS
    )
    assert min(map(int, out.split())) >= 20_000_000
    rule = listed(container)
    # A sync of the host that takes longer than the floor is not held.
    assert rule["matched"] == CALLS and 0 < rule["held"] <= CALLS
    assert err.startswith("dashpot: rule on ") and err.count("\n") == 1


@pytest.mark.parametrize("drops", [[], DROPS], ids=["root", "drops"])
def test_the_status_is_the_programs(container, drops):  # noqa: F811
    container.run(*entry_point("-D 1ms"), *drops, "sh", "-c", "exit 7", code=7)


TRAPS = 'trap "echo caught; exit 3" TERM; echo >/work/ready; while :; do sleep 0.01; done'


@pytest.mark.parametrize("drops", [[], DROPS], ids=["root", "drops"])
@pytest.mark.parametrize(("program", "status"), [(TRAPS, 3), ("echo >/work/ready; exec sleep 1000", 128 + 15)])
def test_a_signal_reaches_the_program(container, drops, program, status):  # noqa: F811
    container.start(*entry_point("-D 1ms"), *drops, "sh", "-c", program)
    eventually((container.work / "ready").exists, "the program")
    assert list(container.processes())
    container.kill("TERM")
    code, out, err = container.end()
    assert code == status, err
    assert out == ("caught\n" if program == TRAPS else "")
    assert not list(container.processes())


def test_the_death_of_dashpot_ends_the_container(container):  # noqa: F811
    container.run(*entry_point("-D 1ms"), "sh", "-c", "kill -KILL $PPID; exec sleep 1000", code=128 + signal.SIGKILL)
    assert not list(container.processes())


def test_the_end_of_the_program_ends_its_orphans(container):  # noqa: F811
    container.run(*entry_point("-D 1ms"), PYTHON, "-c", ORPHAN, "/work/f", "/work/log")
    assert not list(container.processes())


def test_doctor_says_that_calls_can_be_held(container):  # noqa: F811
    out, _ = container.run(DASHPOT, "doctor", "--json")
    (way,) = [way for way in json.loads(out)["ways"] if way["way"].startswith("path:")]
    assert way["works"], way


# Tries to stop each process and each thread of dashpot. Prints what it could stop.
STOPS = """
import os, signal, sys
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
for process in filter(str.isdigit, os.listdir("/proc")):
    if b"dashpot" in open(f"/proc/{process}/cmdline", "rb").read().split(b"\\0")[0]:
        for thread in os.listdir(f"/proc/{process}/task"):
            os.fsync(file)
            try:
                os.kill(int(thread), signal.SIGSTOP)
                print("stopped", thread)
            except PermissionError:
                print("refused")
"""


def test_a_user_cannot_stop_what_looks_its_files_up(container):  # noqa: F811
    out, err = container.run(*entry_point("-D 1ms"), *LISTS, *DROPS, PYTHON, "-c", STOPS, "/work/f")
    assert set(out.split()) == {"refused"}
    assert listed(container)["matched"] == out.count("refused")
    assert err.startswith("dashpot: rule on ") and err.count("\n") == 1
