"""dashpot.testcontainers with the real library, and podman in the place of Docker: the program of a release makes the
files of an unchanged image slow.
"""

import json
import shutil
import tarfile

import pytest

from conftest import ROOT, requires
from engine import engine, needs_podman
from packages import install_program, run
from test_python_containers import PYTHON, pytestmark as needs_the_library

pytestmark = [*needs_podman, needs_the_library, requires("busybox")]
# With these settings, the library starts no container that cleans up after others (ryuk), and asks for no bridge
# between containers.
SETTINGS = {"TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_CONNECTION_MODE": "docker_host"}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """The outcome of a scenario of tests/clients/real_container.py on an image of busybox."""
    home = tmp_path_factory.mktemp("containers")
    (home / "root/bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), home / "root/bin")
    for place in ("data", "tmp"):
        (home / "root" / place).mkdir()
    program = install_program(home)
    with engine() as podman:
        packed = home / "root.tar"
        with tarfile.open(packed, "w") as tar:
            tar.add(home / "root", arcname=".")
        entry = 'ENTRYPOINT ["/bin/busybox", "sh", "-c"]'
        podman("import", "--quiet", "--change", entry, packed, "docker.io/library/small:1")
        with podman.service() as address:
            def of(scenario):
                package = {"PYTHONPATH": str(ROOT / "python/src")}
                environment = {**podman.environment, **SETTINGS, **package, "DOCKER_HOST": address}
                words = [PYTHON, ROOT / "tests/clients/real_container.py", "small:1", program, scenario]
                return json.loads(run(*words, env=environment).stdout)
            yield of


def test_the_files_of_an_unchanged_image_are_slow(outcome):
    (rule,) = outcome("slow")["rules"]
    assert (rule["disk"], rule["held"], rule["why_nothing"]) == ("db", 1, None)


def test_a_program_without_syncs_fails_the_test(outcome):
    told = outcome("idle")
    assert told["error"] == "NothingInjected" and "nothing matched yet" in told["said"], told
