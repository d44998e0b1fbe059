"""Debian packages: an `ar` archive of three members, which are the version of the format, the control files and the
data (man 5 deb)."""

import hashlib
import lzma

from .archive import Entry, program, tar, with_parents

# Services that the package stops before it is removed. The package starts no service.
SERVICES = ("dashpot.service", "dashpot-observe.service")

_POSTINST = """#!/bin/sh
set -e
# The services stay disabled: a daemon that slows disks down must not start because a package was installed.
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
"""
_PRERM = f"""#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl stop {" ".join(SERVICES)} || true
fi
"""
_POSTRM = """#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
"""


def deb(fields, entries, configuration, epoch):
    """A package with these control fields, in the given order, and these files.

    `configuration` names the files that a user may change, and that an upgrade leaves alone.
    """
    entries = with_parents(entries)
    files = [entry for entry in entries if not entry.is_directory]
    size = sum(-(-len(entry.data) // 1024) for entry in files)
    description = fields.pop("Description")
    lines = [f"{name}: {value}" for name, value in fields.items()]
    lines += [f"Installed-Size: {size}", f"Description: {description}"]
    sums = "".join(f"{hashlib.md5(entry.data).hexdigest()}  {entry.path}\n" for entry in files)
    control = [
        Entry("conffiles", "".join(f"/{path}\n" for path in configuration).encode()),
        Entry("control", ("\n".join(lines) + "\n").encode()),
        Entry("md5sums", sums.encode()),
        program("postinst", _POSTINST.encode()),
        program("postrm", _POSTRM.encode()),
        program("prerm", _PRERM.encode()),
    ]
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", _xz(tar(control, epoch, "./"))),
        ("data.tar.xz", _xz(tar(entries, epoch, "./"))),
    ]
    return b"!<arch>\n" + b"".join(_member(name, data, epoch) for name, data in members)


def _xz(data):
    return lzma.compress(data, preset=6)


def _member(name, data, epoch):
    header = f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
    return header + data + b"\n" * (len(data) % 2)
