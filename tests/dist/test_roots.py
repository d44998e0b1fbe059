"""Tests a release's tarball, Debian package and wheel in root file systems that contain nothing of this host.

debootstrap makes the roots of Debian, and target/dist/roots keeps them, so that a second run needs no network. Any
other folder there is tried, too. A maintainer can put the root of an image there:
    mkdir target/dist/roots/ubuntu && docker export $(docker create ubuntu:24.04) | tar -x -C target/dist/roots/ubuntu
"""

import os
import shutil

import pytest

from conftest import ROOT, requires
from packages import OUT, in_namespaces, install_program, needs_root, one, root, run, works  # noqa: F401 (a fixture)

pytestmark = needs_root
ROOTS = ROOT / "target/dist/roots"
DEBIAN = ["bookworm", "bullseye"]
# A user's test, without pytest: the wheel's package starts the wheel's program.
CAPTIVE = """
import subprocess, sys, dashpot
program = dashpot.find_program()
assert program.startswith("/opt/"), program
with dashpot.run("db=ram,size=16M") as d:
    with d["db"].rule("-D 2ms -T read") as slow:
        words = [program, "load", d["db"].uri, "--depth", "4", "--time", "500ms"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    assert slow.achieved.p50_ns >= 2_000_000
    d.check("db.read.p50 >= 2ms", "db.failed == 0")
    try:
        with d["db"].rule("-D 2ms -T flush"):
            pass
    except dashpot.NothingInjected as error:
        print(sys.version_info[:2], "raises", type(error).__name__)
"""


def debian(release):
    """The root file system of a Debian release, with pip. It is made once, and kept."""
    kept = ROOTS / release
    if not kept.exists():
        if shutil.which("debootstrap") is None:
            pytest.skip("debootstrap is missing: make deps")
        draft = ROOTS / f".{release}"
        shutil.rmtree(draft, ignore_errors=True)
        ROOTS.mkdir(parents=True, exist_ok=True)
        made = run("debootstrap", "--variant=minbase", "--include=python3,python3-pip", release, draft, code=None)
        if made.returncode:
            pytest.skip(f"{release} cannot be had here: {made.stderr or made.stdout}"[-200:])
        draft.rename(kept)
    return kept


def musl():
    """The C library of Alpine. It is unpacked but not installed, because a JVM on this host would mistake it for the
    host's own.
    """
    kept = ROOTS / ".musl"
    if not kept.exists():
        draft = ROOTS / ".draft"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        got = run("apt-get", "download", "--quiet", "musl", code=None, cwd=draft)
        if got.returncode:
            pytest.skip(f"musl cannot be had here: {got.stderr or got.stdout}"[-200:])
        run("dpkg-deb", "--extract", *draft.glob("musl_*.deb"), draft)
        draft.rename(kept)
    [library] = kept.rglob("libc.so")
    return library


@pytest.fixture
def copied(tmp_path):
    """Copies a root. The copy is removed with the test, because it is large."""
    def copy(root):
        run("cp", "--archive", root, tmp_path / "root")
        return tmp_path / "root"

    yield copy
    shutil.rmtree(tmp_path / "root", ignore_errors=True)


def names():
    return sorted({*DEBIAN, *(each.name for each in ROOTS.glob("[!.]*"))})


@pytest.mark.parametrize("name", names())
def test_the_packages_on_another_system(name, copied):
    root = copied(debian(name) if name in DEBIAN else ROOTS / name)
    install_program(root)
    works(root)
    if (root / "usr/bin/dpkg").exists():
        try_the_package(root)
    if (root / "usr/bin/python3").exists():
        try_the_wheel(root)
    elif name in DEBIAN:
        pytest.fail("the root has no python3")


def try_the_package(root):
    package = one("dashpot_*_amd64.deb")
    shutil.copy(package, root / "tmp")
    run("chroot", root, "dpkg", "--install", f"/tmp/{package.name}")
    assert not list((root / "etc/systemd/system").rglob("dashpot*")), "a service is enabled"
    works(root, "/usr/bin/dashpot")
    run("chroot", root, "dpkg", "--purge", "dashpot")
    assert not list(root.rglob("usr/**/dashpot*")) and not (root / "etc/dashpot").exists()


def try_the_wheel(root):
    """Installs the wheel that pip chooses among all wheels of the release."""
    (root / "tmp/wheels").mkdir()
    for wheel in OUT.glob("*.whl"):
        shutil.copy(wheel, root / "tmp/wheels")
    pip = ["python3", "-m", "pip", "install", "--no-index", "--find-links", "/tmp/wheels", "--target", "/opt/d"]
    run("chroot", root, *pip, "dashpot")
    works(root, "/opt/d/bin/dashpot")
    (root / "tmp/captive.py").write_text(CAPTIVE)
    script = "mount -t proc proc $root/proc && exec chroot $root env PYTHONPATH=/opt/d python3 /tmp/captive.py"
    assert "raises NothingInjected" in in_namespaces(script, root=str(root)).stdout


@requires("apt-get")
@requires("busybox")
def test_the_tarball_beside_musl_and_busybox(root):  # noqa: F811
    """A root as in Alpine: its C library is musl, its programs are busybox, and it has no glibc."""
    (root / "bin").mkdir()
    loader = f"lib/ld-musl-{os.uname().machine}.so.1"
    for source, place in [(shutil.which("busybox"), "bin/busybox"), (musl(), loader)]:
        (root / place).parent.mkdir(exist_ok=True)
        shutil.copy(source, root / place)
    packed = one(f"dashpot-*-{os.uname().machine}-linux.tar.gz")
    shutil.copy(packed, root / "tmp")
    assert "musl libc" in run("chroot", root, f"/{loader}", code=1).stderr
    run("chroot", root, "/bin/busybox", "tar", "xzf", f"/tmp/{packed.name}", "-C", "/tmp")
    program = f"/tmp/{packed.name.removesuffix('.tar.gz')}/bin/dashpot"
    works(root, program)
    assert not [each for each in root.rglob("*") if each.name.startswith(("libc.so", "libc-", "ld-linux"))]
