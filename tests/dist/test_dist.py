"""A release as its users get it: its checksums, its programs, and the files that go with them. `make test-dist`
runs this and the files beside it.
"""

import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import tarfile
import zipfile
import zlib

import pytest

from conftest import requires
from packages import root  # noqa: F401 (a fixture)
from packages import ARCHITECTURES, OUT, emulated, install_program, needs_root, one, program_of_the_tarball, run, works
from test_release import needs_schemas, valid_parts


def test_every_file_has_its_checksum():
    assert "FAILED" not in run("sha256sum", "--check", one("SHA256SUMS").name, cwd=OUT).stdout
    listed = {line.split()[1] for line in (OUT / "SHA256SUMS").read_text().splitlines()}
    assert listed == {path.name for path in OUT.iterdir() if not path.name.startswith("SHA256SUMS")}


@pytest.mark.skipif("DIST_AGAIN" not in os.environ, reason="DIST_AGAIN names no second release of the same commit")
def test_two_releases_of_a_commit_are_equal():
    again = pathlib.Path(os.environ["DIST_AGAIN"])
    assert (again / "SHA256SUMS").read_text() == (OUT / "SHA256SUMS").read_text()
    run("sha256sum", "--check", OUT / "SHA256SUMS", cwd=again)


@requires("minisign")
def test_a_signature_is_checked(tmp_path):
    shutil.copy(one("SHA256SUMS"), tmp_path)
    run("minisign", "-G", "-W", "-p", "public", "-s", "secret", cwd=tmp_path)
    run("minisign", "-S", "-s", "secret", "-m", "SHA256SUMS", cwd=tmp_path)
    run("minisign", "-V", "-p", "public", "-m", "SHA256SUMS", cwd=tmp_path)
    (tmp_path / "SHA256SUMS").write_text("other")
    run("minisign", "-V", "-p", "public", "-m", "SHA256SUMS", code=1, cwd=tmp_path)


@needs_root
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_tarball_in_an_empty_root(architecture, root):  # noqa: F811
    program, names = program_of_the_tarball(architecture)
    for part in ("/LICENSE-MIT", "/LICENSES-OF-PARTS", "/man1/dashpot-inject.1", "bash-completion/completions/dashpot"):
        assert any(each.endswith(part) for each in names), part
    assert b"/root/" not in program and b"/home/" not in program, "paths of the machine that built it"
    install_program(root, architecture)
    works(root, emulated(architecture, root) + "/dashpot")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_packages_have_the_program_of_the_tarball(architecture, tmp_path):
    program, _names = program_of_the_tarball(architecture)
    package = one(f"dashpot_*_{ARCHITECTURES[architecture]}.deb")
    run("dpkg-deb", "--extract", package, tmp_path)
    assert run("dpkg-deb", "--field", package, "Architecture").stdout == ARCHITECTURES[architecture] + "\n"
    with zipfile.ZipFile(one(f"dashpot-*manylinux*{architecture}*.whl")) as wheel:
        (name,) = [each for each in wheel.namelist() if each.endswith("/scripts/dashpot")]
        packed = {"deb": (tmp_path / "usr/bin/dashpot").read_bytes(), "wheel": wheel.read(name)}
    packed["image"] = program_of_the_image(ARCHITECTURES[architecture])
    assert [name for name, data in packed.items() if data != program] == []


def program_of_the_image(architecture):
    with tarfile.open(one("dashpot-*.oci.tar")) as layout:
        def blob(descriptor):
            data = layout.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
            assert hashlib.sha256(data).hexdigest() == descriptor["digest"].split(":")[1]
            return data

        (named,) = json.load(layout.extractfile("index.json"))["manifests"]
        platforms = {each["platform"]["architecture"]: each for each in json.loads(blob(named))["manifests"]}
        (layer,) = json.loads(blob(platforms[architecture]))["layers"]
        return tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(layer)))).extractfile("dashpot").read()


@requires("objcopy")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_debug_information_is_apart_and_fits(architecture, tmp_path):
    """The program must have the name and the checksum of the file with its debug information, because a
    debugger finds that file by them."""
    (tmp_path / "dashpot").write_bytes(program_of_the_tarball(architecture)[0])
    with tarfile.open(one(f"dashpot-*-{architecture}-linux-debug.tar.gz")) as packed:
        (name,) = [each for each in packed.getnames() if each.endswith("/dashpot.debug")]
        debug = packed.extractfile(name).read()
    (tmp_path / "dashpot.debug").write_bytes(debug)
    words = ["objcopy", "--output-target=binary", "--set-section-flags", ".gnu_debuglink=alloc"]
    run(*words, "--only-section=.gnu_debuglink", "--input-target=elf64-little", tmp_path / "dashpot", tmp_path / "link")
    link = (tmp_path / "link").read_bytes()
    assert link.split(b"\0")[0] == b"dashpot.debug"
    assert int.from_bytes(link[-4:], "little") == zlib.crc32(debug)
    list_of = ["readelf", "--sections", "--wide"]
    sections = {name: run(*list_of, tmp_path / name).stdout for name in ("dashpot", "dashpot.debug")}
    assert ".debug_info" in sections["dashpot.debug"]
    assert ".debug_info" not in sections["dashpot"] and ".symtab" not in sections["dashpot"]


@needs_schemas
def test_the_list_of_parts_is_what_its_schema_says():
    valid_parts(one("dashpot-*.cdx.json").read_text())
