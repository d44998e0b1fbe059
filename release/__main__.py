"""Makes the packages of a release from built programs.

usage: python3 -m release PROGRAMS SHARE TOOLCHAIN OUT
  PROGRAMS   has ARCHITECTURE/dashpot and ARCHITECTURE/dashpot.debug
  SHARE      has the man pages and completions of `scripts/install`
  TOOLCHAIN  is the folder of `scripts/dist-toolchain`
SOURCE_DATE_EPOCH is the time that every file gets.
"""

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from datetime import datetime, timezone
from pathlib import Path

from . import parts
from .archive import Entry, gz, program, tar, with_parents
from .deb import deb
from .oci import image
from .wheel import wheel

ROOT = Path(__file__).parent.parent
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# For each Debian package whose code is in the program, the source package that a security notice
# names.
LIBRARIES = {"libc6-dev": "glibc", "libgcc-12-dev": "gcc-12", "libstd-rust-web-dev": "rustc-web"}


def main(programs, share, toolchain, out):
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    version = cargo_version()
    out.mkdir(parents=True, exist_ok=True)
    found = [each for each in ARCHITECTURES if (programs / each / "dashpot").is_file()]
    if not found:
        sys.exit(f"{programs}: no ARCHITECTURE/dashpot is there: make dist builds them")
    built = {each: (programs / each / "dashpot").read_bytes() for each in found}
    texts = documents(version, toolchain, epoch)
    shared = [Entry(f"share/{path}", data) for path, data in contents(share)]
    made = {}
    for each, data in built.items():
        name = f"dashpot-{version}-{each}-linux"
        files = [program("bin/dashpot", data), *shared, *(Entry(path, text) for path, text in texts.items())]
        made[f"{name}.tar.gz"] = gz(tar(with_parents(files), epoch, f"{name}/"))
        debug = (programs / each / "dashpot.debug").read_bytes()
        made[f"{name}-debug.tar.gz"] = gz(tar([Entry("dashpot.debug", debug)], epoch, f"{name}/"))
        made[f"dashpot_{version}_{ARCHITECTURES[each]}.deb"] = debian(
            version, ARCHITECTURES[each], data, shared, texts, epoch
        )
    made |= dict(wheels(version, built, texts, epoch))
    images = {ARCHITECTURES[each]: data for each, data in built.items()}
    made[f"dashpot-{version}.oci.tar"] = image(images, version, epoch)
    made[f"dashpot-{version}.cdx.json"] = texts["dashpot.cdx.json"]
    for name, data in made.items():
        (out / name).write_bytes(data)
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(made.items()))
    (out / "SHA256SUMS").write_text(sums)


def cargo_version():
    """The version that Cargo.toml gives to the workspace."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def contents(folder):
    return [(str(path.relative_to(folder)), path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()]


def documents(version, toolchain, epoch):
    """The text files that are packed with the program, by name."""
    metadata = json.loads(
        cargo("metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu")
    )
    crates = parts.crates(metadata, tomllib.loads((ROOT / "Cargo.lock").read_text()))
    modules = parts.page_modules(json.loads((ROOT / "web/package-lock.json").read_text()))
    when = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    texts = {
        name: (ROOT / name).read_bytes() for name in ("LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md")
    }
    texts["LICENSES-OF-PARTS"] = parts.licences(licensed(crates, modules))
    texts["dashpot.cdx.json"] = parts.cyclonedx(version, crates, modules, libraries(toolchain), when)
    return texts


def cargo(*words):
    return subprocess.run(["cargo", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def licensed(crates, modules):
    """Each part with its licence, and the licence texts that its author supplies."""
    for each in crates:
        yield f"{each['name']} {each['version']}", each.get("license"), texts_in(Path(each["manifest_path"]).parent)
    for name, number, licence in modules:
        yield f"{name} {number}", licence, texts_in(ROOT / "web/node_modules" / name)
    library = Path("/usr/share/common-licenses/LGPL-2.1")
    notice = (
        "dashpot is linked with this library. dashpot's docs/releasing.md says where the library's source is, "
        "and how to link it again.\n\n"
    )
    text = library.read_text() if library.is_file() else "GNU Lesser General Public License, version 2.1"
    yield "the GNU C library", "LGPL-2.1-or-later", [notice + text]


def texts_in(folder):
    named = ("LICEN", "COPYING", "NOTICE", "UNLICENSE")
    found = [path for path in sorted(folder.glob("*")) if path.name.upper().startswith(named) and path.is_file()]
    return [path.read_text(errors="replace") for path in found]


def libraries(toolchain):
    """The Debian source packages whose code the toolchain links into the program, with their versions."""
    names = [path.name.split("_") for path in sorted((toolchain / "packages").glob("*.deb"))]
    return sorted({(LIBRARIES[name[0]], name[1].replace("%3a", ":")) for name in names if name[0] in LIBRARIES})


def debian(version, architecture, data, shared, texts, epoch):
    fields = {
        "Package": "dashpot",
        "Version": version,
        "Architecture": architecture,
        "Maintainer": "The dashpot developers <developers@dashpot.invalid>",
        "Section": "utils",
        "Priority": "optional",
        "Homepage": "https://github.com/dashpot/dashpot",
        "Description": "slow disks that you control, and a microscope for storage latency\n"
        " dashpot serves disks that are slow in a known way, without a kernel module or\n"
        " root, and shows where the latency of these and of the kernel's disks comes from.",
    }
    here = ROOT / "release"
    entries = [program("usr/bin/dashpot", data)]
    entries += [manual(entry) for entry in shared]
    entries += [Entry(f"usr/share/doc/dashpot/{path}", text) for path, text in texts.items() if path != "CHANGELOG.md"]
    entries.append(Entry("usr/share/doc/dashpot/copyright", copyright_of(texts)))
    entries.append(Entry("usr/share/doc/dashpot/changelog.gz", gz(texts["CHANGELOG.md"])))
    entries.append(Entry("etc/dashpot/lab.toml", (here / "lab.toml").read_bytes()))
    units = sorted((here / "systemd").glob("*.service"))
    entries += [Entry(f"usr/lib/systemd/system/{unit.name}", unit.read_bytes()) for unit in units]
    return deb(fields, entries, ["etc/dashpot/lab.toml"], epoch)


def manual(entry):
    """A man page or a completion, at its path in a Debian package: there man pages are compressed, and zsh's
    completions are in another folder.
    """
    path = f"usr/{entry.path}".replace("share/zsh/site-functions", "share/zsh/vendor-completions")
    return Entry(f"{path}.gz", gz(entry.data)) if "/man/" in path else Entry(path, entry.data)


def copyright_of(texts):
    return (
        b"dashpot is licensed under MIT or Apache-2.0, as you choose. LICENSES-OF-PARTS has the licenses of its parts.\n\n"
        + texts["LICENSE-MIT"]
    )


def wheels(version, built, texts, epoch):
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]
    source = ROOT / "python/src"
    modules = {path: data for path, data in contents(source) if path.endswith((".py", "py.typed"))}
    beside = {"README.md": (ROOT / "python/README.md").read_bytes()}
    beside |= {f"licenses/{name}": texts[name] for name in ("LICENSE-APACHE", "LICENSE-MIT")}
    yield wheel(project, version, modules, beside, None, None, epoch)
    beside["licenses/LICENSES-OF-PARTS"] = texts["LICENSES-OF-PARTS"]
    beside["sboms/dashpot.cdx.json"] = texts["dashpot.cdx.json"]
    for architecture, data in built.items():
        yield wheel(project, version, modules, beside, architecture, data, epoch)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
