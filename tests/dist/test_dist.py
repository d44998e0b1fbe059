"""A release as its users get it: each package in a root that has nothing of this host. `make test-dist`
runs this.

An empty root is a folder with the program and nothing else; debootstrap makes the other roots. A program
of another architecture runs under QEMU's user emulation.
"""

import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

OUT = pathlib.Path(os.environ.get("DIST_OUT", "target/dist/out")).resolve()
LIMIT = 600
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
EMULATOR = shutil.which("qemu-aarch64-static")
# Serves a slow disk in the root, reads it from there, and checks that the reads were slow.
CAPTIVE = """
mkdir -p $root/proc && mount -t proc proc $root/proc || exit
cd $root
chroot . $program serve -d db=ram,size=16M -r 'db -D 2ms -T read' \
    --nbd unix:/tmp/nbd.sock --api unix:/tmp/api.sock --ready-file /tmp/ready >/dev/null &
until [ -e tmp/ready ] || ! kill -0 $!; do sleep 0.05; done
chroot . $program load 'nbd+unix:///db?socket=/tmp/nbd.sock' --depth 4 --time 500ms >/dev/null &&
    chroot . $program --api unix:/tmp/api.sock check 'db.read.p50 >= 2ms' 'db.failed == 0'
ended=$?
kill $! && wait $!
exit $ended
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the roots are root's: run it as root")


def one(pattern):
    found = sorted(OUT.glob(pattern))
    if len(found) != 1:
        pytest.skip(f"{OUT} has {len(found)} files like {pattern}: make dist")
    return found[0]


def run(*words, code=0, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT, **more)
    assert code is None or done.returncode == code, f"{words}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def in_namespaces(script, **variables):
    """Runs the host's shell in namespaces of its own, so that its programs and mounts end with it."""
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc"]
    return run(*unshare, "sh", "-c", script, env={"PATH": os.environ["PATH"], **variables})


def works(root, program="/dashpot"):
    """Checks that the program prints its version and its abilities, and serves a slow disk."""
    words = program.split()
    assert re.match(r"dashpot \S+\n(x86_64|aarch64)-linux, static glibc", run("chroot", root, *words, "version").stdout)
    assert "yes" in run("chroot", root, *words, "doctor", code=None).stdout
    said = in_namespaces(CAPTIVE, root=str(root), program=program).stdout
    assert [line.split()[0] for line in said.splitlines()] == ["ok", "ok"], said


@pytest.fixture
def root(tmp_path):
    """An empty root, but for the directory of sockets that an image has, too."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    return tmp_path


def emulated(architecture, root):
    """The words that come before a command of this architecture, so that it runs in a root."""
    if architecture == os.uname().machine:
        return ""
    if EMULATOR is None:
        pytest.skip("qemu-aarch64-static is missing: make deps")
    shutil.copy(EMULATOR, root / "emulator")
    return "/emulator "


def test_every_file_has_its_checksum():
    assert "FAILED" not in run("sha256sum", "--check", one("SHA256SUMS").name, cwd=OUT).stdout


@pytest.mark.skipif(shutil.which("minisign") is None, reason="minisign is missing: make deps")
def test_a_signature_is_checked(tmp_path):
    shutil.copy(one("SHA256SUMS"), tmp_path)
    run("minisign", "-G", "-W", "-p", "public", "-s", "secret", cwd=tmp_path)
    run("minisign", "-S", "-s", "secret", "-m", "SHA256SUMS", cwd=tmp_path)
    run("minisign", "-V", "-p", "public", "-m", "SHA256SUMS", cwd=tmp_path)
    (tmp_path / "SHA256SUMS").write_text("other")
    run("minisign", "-V", "-p", "public", "-m", "SHA256SUMS", code=1, cwd=tmp_path)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_tarball_in_an_empty_root(architecture, root):
    with tarfile.open(one(f"dashpot-*-{architecture}-linux.tar.gz")) as packed:
        names = packed.getnames()
        (name,) = [each for each in names if each.endswith("/bin/dashpot")]
        (root / "dashpot").write_bytes(packed.extractfile(name).read())
    (root / "dashpot").chmod(0o755)
    wanted = ("/LICENSE-MIT", "/LICENSES-OF-PARTS", "/share/man/man1/dashpot-inject.1", "bash-completion/completions/dashpot")
    for part in wanted:
        assert any(each.endswith(part) for each in names), part
    program = (root / "dashpot").read_bytes()
    assert b"/root/" not in program and b"/home/" not in program, "paths of the machine that built it"
    works(root, emulated(architecture, root) + "/dashpot")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_image(architecture, root):
    """Each layer is there, and the program in it runs."""
    with tarfile.open(one("dashpot-*.oci.tar")) as layout:
        def blob(descriptor):
            data = layout.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
            assert hashlib.sha256(data).hexdigest() == descriptor["digest"].split(":")[1]
            return data

        (named,) = json.load(layout.extractfile("index.json"))["manifests"]
        platforms = {each["platform"]["architecture"]: each for each in json.loads(blob(named))["manifests"]}
        if ARCHITECTURES[architecture] not in platforms:
            pytest.skip(f"the image has no {architecture}")
        manifest = json.loads(blob(platforms[ARCHITECTURES[architecture]]))
        for layer in manifest["layers"]:
            tarfile.open(fileobj=io.BytesIO(blob(layer))).extractall(root)
        config = json.loads(blob(manifest["config"]))["config"]
    assert (root / "tmp").stat().st_mode & 0o7777 == 0o1777
    works(root, emulated(architecture, root) + config["Entrypoint"][0])


@pytest.mark.skipif(shutil.which("debootstrap") is None, reason="debootstrap is missing: make deps")
@pytest.mark.parametrize("release", ["bookworm", "bullseye"])
def test_the_package_and_the_wheel_on_debian(release, tmp_path):
    root = tmp_path / "root"
    made = run("debootstrap", "--variant=minbase", "--include=python3,python3-pip", release, root, code=None)
    if made.returncode:
        pytest.skip(f"{release} cannot be had here: {made.stderr or made.stdout}"[-200:])
    (package, wheel) = one("dashpot_*_amd64.deb"), one("dashpot-*manylinux*x86_64*.whl")
    for each in (package, wheel):
        shutil.copy(each, root / "tmp")
    run("chroot", root, "dpkg", "--install", f"/tmp/{package.name}")
    assert not list((root / "etc/systemd/system").rglob("dashpot*")), "a service is enabled"
    works(root, "/usr/bin/dashpot")
    run("chroot", root, "dpkg", "--purge", "dashpot")
    assert not list(root.rglob("usr/**/dashpot*")) and not (root / "etc/dashpot").exists()
    run("chroot", root, "python3", "-m", "pip", "install", "--no-index", "--target", "/opt/d", f"/tmp/{wheel.name}")
    works(root, "/opt/d/bin/dashpot")
