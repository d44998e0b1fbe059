"""The image of a release as podman runs it, and the files of integrations/ that use the image."""

import json
import re
import shutil

import pytest

from conftest import ROOT, eventually
from engine import engine, needs_podman
from packages import ARCHITECTURES, emulated, one
from test_roots import debian

pytestmark = needs_podman
INTEGRATIONS = ROOT / "integrations"
TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module")
def podman():
    one("dashpot-*.oci.tar")
    with engine() as it:
        it.image = it.load()
        yield it


def test_the_image_has_the_name_that_the_files_of_pipelines_use(podman):
    used = re.search(r"image: (dashpot:.*)", (INTEGRATIONS / "compose.yml").read_text())[1]
    assert podman.image == f"docker.io/library/{used}"
    assert f"--from={used} " in (INTEGRATIONS / "Dockerfile").read_text()


def try_it(podman, container, disk, *before):
    """Asks a container's daemon as the health check does, and reads its slow disk."""
    said = lambda *words, code=0: podman("exec", container, *before, "/dashpot", *words, code=code)  # noqa: E731
    eventually(lambda: disk in said("status", code=None), "a daemon in the container")
    said("inject", disk, "-D", "2ms", "-T", "read")
    said("load", f"nbd://127.0.0.1:10809/{disk}", "--depth", "4", "--time", "500ms")
    checked = said("check", f"{disk}.read.p50 >= 2ms", f"{disk}.failed == 0")
    assert [line.split()[0] for line in checked.splitlines()] == ["ok", "ok"], checked


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_image_serves_by_itself(architecture, tmp_path):
    """The image must serve the default lab as user 65532, even with a read-only root."""
    with engine() as podman:
        archive = f"oci-archive:{one('dashpot-*.oci.tar')}"
        image = podman("pull", "--quiet", "--arch", ARCHITECTURES[architecture], archive)
        config = json.loads(podman("inspect", image))[0]["Config"]
        words, before = [image], emulated(architecture, tmp_path).split()
        if before:
            entry = json.dumps([*before, *config["Entrypoint"]])
            words = ["--volume", f"{tmp_path}/emulator:/emulator:ro", "--entrypoint", entry, image, *config["Cmd"]]
        container = podman.start("--read-only", *words)
        try_it(podman, container, "c1t1d0", *before)
        pid = podman("inspect", "--format", "{{.State.Pid}}", container)
        assert re.search(r"^Uid:\s+65532\s", open(f"/proc/{pid}/status").read(), re.MULTILINE)
        podman("stop", "--time", "60", container)
        assert podman("inspect", "--format", "{{.State.ExitCode}}", container) == "0"


def test_the_service_of_compose_is_healthy(podman):
    """Runs the command and the health check of the Compose service, with the token from the environment."""
    text = (INTEGRATIONS / "compose.yml").read_text()
    assert "read_only: true" in text
    command = json.loads(re.search(r"command: (\[.*\])", text)[1])
    (kind, *health) = json.loads(re.search(r"test: (\[.*\])", text)[1])
    assert kind == "CMD"
    container = podman.start("--read-only", "--env", f"DASHPOT_TOKEN={TOKEN}", podman.image, *command)
    eventually(lambda: "db" in podman("exec", container, *health, code=None), "a healthy service")
    try_it(podman, container, "db")


def test_the_dockerfile_makes_an_image_whose_syncs_are_slow(podman, tmp_path):
    """Builds the Dockerfile on an image of Debian that debootstrap makes, and checks that syncs in the result
    are slow."""
    podman.load_another("docker.io/library/debian:12", debian("bookworm"))
    shutil.copy(INTEGRATIONS / "Dockerfile", tmp_path)
    podman("build", "--quiet", "--isolation", "chroot", "--pull-never", "--tag", "slow", tmp_path)
    timed = "date +%s%N; dd if=/dev/zero of=/data/file bs=8k count=1 conv=fsync 2>/dev/null; date +%s%N"
    podman.run("slow")
    began, ended = map(int, podman.run("slow", "sh", "-c", timed).split())
    assert ended - began >= 20_000_000
