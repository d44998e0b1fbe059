"""Lists the parts of the program that others wrote, in CycloneDX, and collects their licences."""

import json
import uuid


def crates(metadata, lock):
    """The crates in the program, from `cargo metadata` and Cargo.lock, but not those that only a build script needs."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    sums = {(each["name"], each["version"]): each.get("checksum") for each in lock["package"]}
    ahead = [package["id"] for package in packages.values() if package["name"] == "dashpot"]
    seen = set()
    while ahead:
        here = ahead.pop()
        if here in seen or "proc-macro" in _kinds(packages[here]):
            continue
        seen.add(here)
        ahead += [
            each["pkg"] for each in nodes[here]["deps"] if any(kind["kind"] is None for kind in each["dep_kinds"])
        ]
    found = [packages[each] for each in seen if packages[each]["source"]]
    return [
        {**each, "checksum": sums.get((each["name"], each["version"]))}
        for each in sorted(found, key=lambda each: (each["name"], each["version"]))
    ]


def _kinds(package):
    return [kind for target in package["targets"] for kind in target["kind"]]


def page_modules(lock):
    """The npm packages in the page, from its package-lock.json: name, version, licence."""
    packages = lock["packages"].items()
    kept = [(path.split("node_modules/")[-1], each) for path, each in packages if path and not each.get("dev")]
    return [(name, each["version"], each.get("license")) for name, each in sorted(kept)]


def cyclonedx(version, crates, modules, libraries, timestamp):
    """The list of parts in CycloneDX 1.5. `libraries` has the names and versions of Debian's source packages whose
    code is linked.
    """
    components = [
        _component("cargo", each["name"], each["version"], each.get("license"), each.get("checksum")) for each in crates
    ]
    components += [_component("npm", *each) for each in modules]
    components += [_component("deb/debian", name, version) for name, version in libraries]
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": timestamp,
            "component": _component("generic", "dashpot", version, "MIT OR Apache-2.0") | {"type": "application"},
        },
        "components": components,
    }
    # The serial number follows from the parts, so that equal builds have equal lists.
    body["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True)).urn
    return json.dumps(body, indent=1, sort_keys=True).encode()


def _component(kind, name, version, licence=None, checksum=None):
    address = f"pkg:{kind}/{name.replace('@', '%40')}@{version.replace('+', '%2B')}"
    part = {"type": "library", "name": name, "version": version, "purl": address, "bom-ref": address}
    if licence:
        # Old crates write MIT/Apache-2.0, which is no valid expression.
        part["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    if checksum:
        part["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return part


def licences(parts):
    """All licences as one text. Each text of a licence occurs only once, after the names of all parts to which it
    applies.

    Each part is a tuple of three: its name with its version, its author's name for the licence, and the licence texts.
    """
    owners = {}
    for name, licence, texts in parts:
        for text in texts or [f"(No text came with it. Its author names: {licence}.)"]:
            owners.setdefault(text.strip(), []).append(name)
    blocks = [f"{', '.join(names)}\n{'-' * 72}\n{text}\n" for text, names in owners.items()]
    return ("dashpot contains the following, under these licences.\n\n" + "\n\n".join(blocks)).encode()
