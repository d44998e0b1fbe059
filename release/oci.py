"""Makes an image for several architectures: a tar of an OCI layout, which `skopeo`, `podman load` and registries take."""

import hashlib
import json
from datetime import datetime, timezone

from .archive import Entry, directory, gz, tar, with_parents

# The id of the user who runs the program: 65532 is customary in images without a shell.
USER = 65532
NBD_PORT, API_PORT = 10809, 10810
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"


def root(program):
    """The files of the image. The image has /tmp, because dashpot puts sockets and tokens there."""
    return with_parents(
        [
            Entry("dashpot", program, 0o755),
            Entry("etc/passwd", f"dashpot:x:{USER}:{USER}::/tmp:/sbin/nologin\n".encode()),
            Entry("etc/group", f"dashpot:x:{USER}:\n".encode()),
            directory("tmp", 0o1777),
        ]
    )


def image(programs, version, epoch):
    """The OCI layout as a tar, with a manifest for each architecture (`amd64`, `arm64`) and an index of the manifests."""
    blobs = {}
    manifests = []
    for architecture, program in programs.items():
        layer = tar(root(program), epoch)
        packed = _blob(blobs, gz(layer), "application/vnd.oci.image.layer.v1.tar+gzip")
        about = _config(architecture, version, epoch, _digest(layer))
        config = _blob(blobs, _json(about), "application/vnd.oci.image.config.v1+json")
        manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": config, "layers": [packed]}
        platform = {"architecture": architecture, "os": "linux"}
        manifests.append({**_blob(blobs, _json(manifest), _MANIFEST), "platform": platform})
    index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": manifests}
    named = {**_blob(blobs, _json(index), _INDEX), "annotations": names(version)}
    entries = [
        Entry("oci-layout", _json({"imageLayoutVersion": "1.0.0"})),
        Entry("index.json", _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [named]})),
        *(Entry(f"blobs/sha256/{name}", data) for name, data in blobs.items()),
    ]
    return tar(with_parents(entries), epoch)


def names(version):
    """The names that `podman load` and `docker load` give the image."""
    return {
        "org.opencontainers.image.ref.name": version,
        "io.containerd.image.name": f"docker.io/library/dashpot:{version}",
    }


def _config(architecture, version, epoch, layer):
    created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    serve = ["serve", "--nbd", f"tcp:0.0.0.0:{NBD_PORT}", "--api", f"tcp:0.0.0.0:{API_PORT}", "--allow-host", "dashpot"]
    return {
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {f"{NBD_PORT}/tcp": {}, f"{API_PORT}/tcp": {}},
            # Tells `status` and the other commands in the container where the daemon is.
            "Env": ["PATH=/", f"DASHPOT_API=tcp:127.0.0.1:{API_PORT}"],
            "Entrypoint": ["/dashpot"],
            "Cmd": serve,
            # As a volume, /tmp is writable even where the root is read-only.
            "Volumes": {"/tmp": {}},
            "WorkingDir": "/tmp",
            "Labels": {
                "org.opencontainers.image.title": "dashpot",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [layer]},
        "history": [{"created": created, "created_by": "make dist"}],
    }


def _blob(blobs, data, kind):
    digest = _digest(data)
    blobs[digest.removeprefix("sha256:")] = data
    return {"mediaType": kind, "digest": digest, "size": len(data)}


def _digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
