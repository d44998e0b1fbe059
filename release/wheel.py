"""Wheels of the Python package: one per architecture, with the program in it, and a pure one for other systems."""

import base64
import hashlib
import io
import time
import zipfile

# A static program runs under any C library, so one file serves glibc and musl.
TAGS = {
    "x86_64": "manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    "aarch64": "manylinux2014_aarch64.manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    None: "any",
}


def wheel(project, version, modules, beside, architecture, program, epoch):
    """The wheel's name and its bytes.

    `project` is the table of pyproject.toml. `modules` maps the paths of the package's files to their contents, and
    `beside` does so for the files beside the metadata (licences, the readme, the list of parts). Without an
    architecture the wheel lacks the program.
    """
    name, tag = project["name"], TAGS[architecture]
    info = f"{name}-{version}.dist-info"
    files = dict(modules)
    if architecture:
        files[f"{name}-{version}.data/scripts/dashpot"] = program
    files[f"{info}/METADATA"] = _metadata(project, version, beside)
    files[f"{info}/WHEEL"] = _kind(architecture, tag)
    files[f"{info}/entry_points.txt"] = _entry_points(project)
    files |= {f"{info}/{path}": data for path, data in beside.items() if path != "README.md"}
    return f"{name}-{version}-py3-none-{tag}.whl", _zip(files, f"{info}/RECORD", epoch)


def _metadata(project, version, beside):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        f"License-Expression: {project['license']['text']}",
        *(f"License-File: {path.removeprefix('licenses/')}" for path in beside if path.startswith("licenses/")),
        *(f"Classifier: {each}" for each in project["classifiers"]),
        "Description-Content-Type: text/markdown",
        "",
        beside["README.md"].decode(),
    ]
    return "\n".join(lines).encode()


def _kind(architecture, tag):
    lines = ["Wheel-Version: 1.0", "Generator: dashpot", f"Root-Is-Purelib: {'false' if architecture else 'true'}"]
    lines += [f"Tag: py3-none-{each}" for each in tag.split(".")]
    return ("\n".join(lines) + "\n").encode()


def _entry_points(project):
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    return ("\n".join(lines) + "\n").encode()


def _zip(files, record, epoch):
    lines = [f"{path},sha256={_hash(data)},{len(data)}" for path, data in sorted(files.items())]
    files = {**files, record: ("\n".join([*lines, f"{record},,"]) + "\n").encode()}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, data in sorted(files.items()):
            entry = zipfile.ZipInfo(path, time.gmtime(max(epoch, _FIRST))[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # unix, so that pip applies the modes of the next line
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            archive.writestr(entry, data, compresslevel=9)
    return made.getvalue()


def _hash(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


# A zip archive cannot store a time before 1980.
_FIRST = 315532800
