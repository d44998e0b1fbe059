"""dashpot.testcontainers: the real library with a Docker client that runs the container's words as a process. No test
here runs Docker itself.
"""

import json
import os

import pytest
from conftest import BINARY, ROOT, run

PYTHON = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "clients/venv/bin/python"
LIBRARY = PYTHON.parent.parent / "lib"

pytestmark = pytest.mark.skipif(
    not list(LIBRARY.glob("python3*/site-packages/testcontainers")),
    reason="testcontainers is missing: `make deps` installs it",
)


@pytest.fixture
def outcome(directory):
    def of(scenario):
        environment = {"PYTHONPATH": str(ROOT / "python/src"), "DASHPOT": BINARY, "TMPDIR": str(directory)}
        return json.loads(
            run(PYTHON, ROOT / "tests/clients/slow_container.py", scenario, directory, env=environment).stdout
        )

    return of


@pytest.mark.parametrize("scenario", ["present", "pulled"])
def test_the_program_of_an_image_runs_on_slow_files(outcome, scenario):
    told = outcome(scenario)
    (rule,) = told["rules"]
    assert (rule["disk"], rule["held"], rule["why_nothing"]) == ("db", 1, None)
    before, after = told["words"].index("--"), told["words"].index("--") + 1
    assert told["words"][:2] == ["/dashpot", "run"] and "--report" in told["words"][:before]
    assert told["words"][after : after + 2] == ["sh", "-c"]


def test_an_entry_point_of_ones_own_stays(outcome):
    told = outcome("entry")
    assert told["rules"][0]["held"] == 1 and told["words"][told["words"].index("--") + 1] == "env"


def test_a_test_that_met_no_slow_file_fails(outcome):
    told = outcome("idle")
    assert told["error"] == "NothingInjected" and "nothing" in told["said"], told
    assert outcome("allowed")["rules"][0]["injected"] == 0


def test_a_database_that_does_not_sync_is_refused(outcome):
    told = outcome("fsync")
    assert told["error"] == "DashpotError" and "fsync=off" in told["said"] and "allow_idle" in told["said"]


def test_an_image_for_another_machine_is_refused(outcome):
    assert "riscv64" in outcome("machine")["said"]


def test_the_error_of_a_test_is_not_hidden(outcome):
    assert outcome("own") == {"error": "KeyError", "said": '"the test\'s own"'}
