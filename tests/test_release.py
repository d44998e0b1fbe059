"""Makes the packages of a release from a small program, and checks them with Debian's tools, pip and the
specifications.

`make test-dist` tries the packages of the real program.
"""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest
from conftest import ROOT, requires, run
from test_generated_clients import TOOLS

sys.path.insert(0, str(ROOT))

from release import archive, deb, oci, parts, wheel  # noqa: E402

EPOCH = 1_700_000_000
PROGRAM = b"#!/bin/sh\necho a program that says $1\n"
PIP = TOOLS / "venv/bin/python"
needs_schemas = pytest.mark.skipif(
    not list(TOOLS.glob("venv/lib/python3*/site-packages/cyclonedx")),
    reason="cyclonedx is missing: `make deps` installs it",
)
# Prints the first violation of CycloneDX's own schema.
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_5).validate_str(sys.stdin.read()))
"""


def valid_parts(text):
    assert run(PIP, "-c", VALIDATE, stdin=text).stdout == "None\n"


def project():
    return tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]


def made_deb():
    fields = {
        "Package": "dashpot",
        "Version": "1.2.3",
        "Architecture": "all",
        "Maintainer": "A B <a@b.invalid>",
        "Description": "short\n longer",
    }
    entries = [archive.program("usr/bin/dashpot", PROGRAM), archive.Entry("etc/dashpot/lab.toml", b"# a lab\n")]
    return deb.deb(fields, entries, ["etc/dashpot/lab.toml"], EPOCH)


def made_wheel(architecture):
    modules = {path.name: path.read_bytes() for path in (ROOT / "python/src").glob("*.py")}
    modules |= {f"dashpot/{path.name}": path.read_bytes() for path in (ROOT / "python/src/dashpot").glob("*.py")}
    beside = {"README.md": b"# It\n", "licenses/LICENSE-MIT": b"text\n"}
    return wheel.wheel(project(), "1.2.3", modules, beside, architecture, PROGRAM, EPOCH)


def made_image():
    return oci.image({"amd64": PROGRAM, "arm64": PROGRAM + b"# arm\n"}, "1.2.3", EPOCH)


@pytest.mark.parametrize(
    "make", [made_deb, made_image, lambda: made_wheel("aarch64")[1]], ids=["deb", "image", "wheel"]
)
def test_equal_contents_make_equal_bytes(make, monkeypatch):
    first = make()
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.setenv("LC_ALL", "C")
    assert make() == first


@requires("dpkg-deb")
def test_debian_installs_the_package(directory):
    package = directory / "p.deb"
    package.write_bytes(made_deb())
    assert run("dpkg-deb", "--field", package, "Package").stdout == "dashpot\n"
    listed = run("dpkg-deb", "--contents", package).stdout
    assert "-rwxr-xr-x root/root" in listed and "./usr/bin/dashpot" in listed and "2023-11-1" in listed
    run("dpkg-deb", "--control", package, directory / "control")
    assert (directory / "control/conffiles").read_text() == "/etc/dashpot/lab.toml\n"
    for script in ("postinst", "prerm", "postrm"):
        run("sh", "-n", directory / "control" / script)
        assert "enable" not in (directory / "control" / script).read_text().replace("disabled", "")
    root = directory / "root"
    (root / "var/lib/dpkg").mkdir(parents=True)
    if os.geteuid() == 0:
        run("dpkg", "--root", root, "--force-script-chrootless", "--force-not-root", "--install", package)
        assert run(root / "usr/bin/dashpot", "hello").stdout == "a program that says hello\n"


@requires("systemd-analyze")
@pytest.mark.parametrize("unit, most", [("dashpot.service", 2.0), ("dashpot-observe.service", 3.5)])
def test_units_are_valid_hardened_and_disabled(unit, most, directory):
    (directory / unit).write_text(
        (ROOT / "release/systemd" / unit).read_text().replace("/usr/bin/dashpot", "/bin/true")
    )
    said = run("systemd-analyze", "verify", "--man=no", directory / unit)
    assert unit not in said.stderr, said.stderr
    judged = run("systemd-analyze", "security", "--offline=yes", directory / unit).stdout
    exposure = float(judged.split("Overall exposure level")[1].split(":")[1].split()[0])
    assert exposure <= most, judged
    assert "Type=notify\n" in (directory / unit).read_text()


def blob(layout, descriptor):
    """Reads a part of the layout, and checks that it has the digest and the size that its descriptor
    gives."""
    data = layout.extractfile(f"blobs/{descriptor['digest'].replace(':', '/')}").read()
    assert len(data) == descriptor["size"]
    assert "sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"]
    return data


def test_the_image_is_whole_for_each_architecture():
    layout = tarfile.open(fileobj=io.BytesIO(made_image()))
    assert json.load(layout.extractfile("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    (named,) = json.load(layout.extractfile("index.json"))["manifests"]
    assert named["annotations"] == {
        "org.opencontainers.image.ref.name": "1.2.3",
        "io.containerd.image.name": "docker.io/library/dashpot:1.2.3",
    }
    manifests = json.loads(blob(layout, named))["manifests"]
    assert [each["platform"]["architecture"] for each in manifests] == ["amd64", "arm64"]
    for each in manifests:
        manifest = json.loads(blob(layout, each))
        config = json.loads(blob(layout, manifest["config"]))
        assert config["architecture"] == each["platform"]["architecture"]
        assert config["config"]["User"] == "65532:65532" and config["config"]["Entrypoint"] == ["/dashpot"]
        (layer,) = manifest["layers"]
        plain = gzip.decompress(blob(layout, layer))
        assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(plain).hexdigest()]
        files = {entry.name: entry for entry in tarfile.open(fileobj=io.BytesIO(plain))}
        assert files["dashpot"].mode == 0o755 and files["dashpot"].size > 0
        assert files["tmp"].mode == 0o1777 and files["tmp"].isdir()


@pytest.mark.skipif(not PIP.exists(), reason="pip is missing: make deps")
@pytest.mark.parametrize("architecture", [os.uname().machine, None])
def test_pip_installs_a_wheel(architecture, directory):
    name, data = made_wheel(architecture)
    (directory / name).write_bytes(data)
    into = directory / "site"
    run(PIP, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", into, directory / name)
    environment = {"PATH": "/nonexistent", "PYTHONPATH": str(into)}
    asked = [sys.executable, "-c", "import dashpot; print(dashpot.find_program())"]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True)
    if architecture:
        assert run(done.stdout.strip(), "it").stdout == "a program that says it\n"
    else:
        assert "neither in this package nor on $PATH" in done.stderr
    points = next(into.glob("*.dist-info")) / "entry_points.txt"
    assert "[pytest11]\ndashpot = dashpot_pytest" in points.read_text()


def test_wheels_name_every_system_that_can_use_them():
    for architecture in ("x86_64", "aarch64"):
        name, data = made_wheel(architecture)
        tags = name.removesuffix(".whl").split("-")[-1].split(".")
        with zipfile.ZipFile(io.BytesIO(data)) as archived:
            said = archived.read("dashpot-1.2.3.dist-info/WHEEL").decode()
        assert [f"Tag: py3-none-{tag}" in said for tag in tags] == [True] * 3
        assert {tag.split("_")[0] for tag in tags} == {"manylinux2014", "manylinux", "musllinux"}
    assert made_wheel(None)[0] == "dashpot-1.2.3-py3-none-any.whl"


def test_the_list_of_parts_has_what_is_linked_and_nothing_else():
    package = {"source": "registry", "license": "MIT/Apache-2.0", "version": "1.0.0+x", "targets": [{"kind": ["lib"]}]}
    metadata = {
        "packages": [
            {**package, "id": "d", "name": "dashpot", "source": None},
            {**package, "id": "a", "name": "a"},
            {**package, "id": "b", "name": "built-with"},
            {**package, "id": "m", "name": "a-macro", "targets": [{"kind": ["proc-macro"]}]},
        ],
        "resolve": {
            "nodes": [
                {
                    "id": "d",
                    "deps": [
                        {"pkg": "a", "dep_kinds": [{"kind": None}]},
                        {"pkg": "b", "dep_kinds": [{"kind": "build"}, {"kind": "dev"}]},
                        {"pkg": "m", "dep_kinds": [{"kind": None}]},
                    ],
                },
                {"id": "a", "deps": []},
            ]
        },
    }
    found = parts.crates(metadata, {"package": [{"name": "a", "version": "1.0.0+x", "checksum": "ab"}]})
    assert [each["name"] for each in found] == ["a"]
    lock = {
        "packages": {"": {}, "node_modules/@x/y": {"version": "2.0.0"}, "node_modules/z": {"version": "1", "dev": True}}
    }
    listed = json.loads(
        parts.cyclonedx("1.2.3", found, parts.page_modules(lock), [("glibc", "2.36-9")], "2023-11-14T22:13:20Z")
    )
    assert [part["purl"] for part in listed["components"]] == [
        "pkg:cargo/a@1.0.0%2Bx",
        "pkg:npm/%40x/y@2.0.0",
        "pkg:deb/debian/glibc@2.36-9",
    ]
    assert listed["components"][0]["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert listed["components"][0]["hashes"] == [{"alg": "SHA-256", "content": "ab"}]
    text = parts.licences([("a 1", "MIT", ["Text\n"]), ("b 1", "MIT", ["Text"]), ("c 1", "ISC", [])]).decode()
    assert text.count("Text") == 1 and "a 1, b 1" in text and "Its author names: ISC" in text


@needs_schemas
def test_the_list_of_parts_is_what_its_schema_says():
    crates = [{"name": "a", "version": "1.0.0+x", "license": "MIT/Apache-2.0", "checksum": "ab" * 32}]
    listed = parts.cyclonedx("1.2.3", crates, [("@x/y", "2.0.0", "MIT")], [("glibc", "2.36-9")], "2023-11-14T22:13:20Z")
    valid_parts(listed.decode())
    with pytest.raises(AssertionError, match="not-a-kind"):
        valid_parts(listed.decode().replace('"library"', '"not-a-kind"'))


# Uses the package of the pure wheel as on another system: the program is missing, and on Windows Python has no
# unix sockets.
ELSEWHERE = """
import os, socket, sys
import pathlib, http.client, json, sysconfig, tempfile, subprocess, select
sys.platform = sys.argv[1]
if sys.platform == "win32":
    del os.getuid, socket.AF_UNIX
import dashpot
for call in (lambda: dashpot.run("db=ram,size=1M"), dashpot.connect, lambda: dashpot.connect("unix:/x")):
    try:
        call()
    except dashpot.DashpotError as error:
        print(error)
"""


@pytest.mark.parametrize(
    "system, said",
    [
        ("darwin", ["it runs on Linux only: run it in a container", "no daemon answers", "no daemon answers"]),
        (
            "win32",
            ["it runs on Linux only: run it in a container", "set $DASHPOT_API", "on Windows, Python has no unix"],
        ),
    ],
)
def test_the_package_says_what_to_do_on_other_systems(system, said, directory):
    environment = {"PATH": "/nonexistent", "PYTHONPATH": str(ROOT / "python/src"), "HOME": str(directory)}
    if system == "darwin":
        environment["XDG_RUNTIME_DIR"] = str(directory)
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, system], env=environment, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and all(word in line for word, line in zip(said, lines)), done.stdout + done.stderr
