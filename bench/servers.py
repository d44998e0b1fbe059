"""dashpot and its peers: how to start each, and whether it answers."""

import json
import os
import shutil
import socket
import subprocess
import time

import process
import wire

DASHPOT = os.path.abspath(os.environ["DASHPOT"])
SIZE = 64 << 20
START_SECONDS = 20


class Unavailable(Exception):
    """A peer that is not installed, or does not answer."""


class Server:
    """One server process, at a unix socket or a TCP port."""

    def __init__(self, name, directory, kind="unix", export=""):
        self.name, self.kind, self.export = name, kind, export
        self.directory = f"{directory}/{name}.{kind}".replace(" ", "-")
        os.mkdir(self.directory)
        self.socket = f"{self.directory}/nbd.sock"
        self.port = _free_port() if kind == "tcp" else None
        self.process = None

    def start(self, argv):
        if not shutil.which(argv[0]):
            raise Unavailable(f"{argv[0]} is not installed: make deps")
        # The output goes to a file: it would fill a pipe, because no process reads while the server runs.
        self.errors = open(f"{self.directory}/stderr", "w+")
        self.process = process.start(argv, stderr=self.errors)
        end = time.monotonic() + START_SECONDS
        try:
            while not self.answers():
                if self.process.poll() is not None:
                    raise Unavailable(f"{argv[0]} ended: {self.said()}")
                if time.monotonic() > end:
                    raise Unavailable(f"{argv[0]} does not answer within {START_SECONDS} s")
                time.sleep(0.001)
        except BaseException:
            self.stop()
            raise
        return self

    def said(self):
        self.errors.seek(0)
        return self.errors.read().strip()[-300:]

    @property
    def pid(self):
        return self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process:
            process.stop(self.process)
            self.errors.close()

    def uri(self, export=None):
        export = self.export if export is None else export
        if self.kind == "tcp":
            return f"nbd://127.0.0.1:{self.port}/{export}"
        return f"nbd+unix:///{export}?socket={self.socket}"

    def connect(self, export=None):
        """A connection past its handshake."""
        if self.kind == "tcp":
            plain = socket.create_connection(("127.0.0.1", self.port), 5)
        else:
            plain = socket.socket(socket.AF_UNIX)
            plain.connect(self.socket)
        connection = wire.Wire(plain)
        connection.go(self.export if export is None else export)
        return connection

    def answers(self):
        try:
            connection = self.connect()
        except (OSError, wire.Closed):
            return False
        connection.close()
        return True

    def fill(self, export=None):
        """Writes to the whole disk once, so that every server has allocated the memory that it will read."""
        connection = self.connect(export)
        for offset in range(0, SIZE, 1 << 20):
            error = connection.call(wire.CMD_WRITE, offset, 1 << 20, data=b"\xa5" * (1 << 20))
            if error:
                raise Unavailable(f"{self.name} answers a write with error {error}")
        connection.close()


class Dashpot(Server):
    """`dashpot serve`, and the commands that talk to it."""

    def __init__(self, directory, disks, options=(), kind="unix", name="dashpot"):
        super().__init__(name, directory, kind, disks[0].split("=")[0])
        nbd = f"unix:{self.socket}" if kind == "unix" else f"tcp:127.0.0.1:{self.port}"
        api = f"unix:{self.directory}/api.sock"
        self.environment = {**os.environ, "DASHPOT_API": api}
        words = [word for disk in disks for word in ("-d", disk)]
        try:
            self.start([DASHPOT, "serve", *words, "--nbd", nbd, "--api", api, *options])
        except Unavailable as reason:
            # A peer may be missing, but dashpot may not.
            raise RuntimeError(str(reason)) from None

    def ask(self, *words):
        answer = subprocess.run([DASHPOT, *words], env=self.environment, capture_output=True, text=True, timeout=60)
        if answer.returncode:
            raise RuntimeError(f"dashpot {' '.join(words)}: {process.complaint(answer.stderr)}")
        return answer.stdout

    def json(self, *words):
        return json.loads(self.ask(*words, "--json"))

    def in_flight(self):
        return sum(disk["in_flight"] for disk in self.json("status")["disks"])


def nbdkit(directory, kind="unix", options=(), filter_options=(), name="nbdkit", size=SIZE):
    server = Server(name, directory, kind)
    place = ["-U", server.socket] if kind == "unix" else ["-i", "127.0.0.1", "-p", str(server.port)]
    return server.start(["nbdkit", "-f", *place, *options, "memory", str(size), *filter_options])


def nbdkit_delay(directory, delay_ms, threads):
    """nbdkit with its delay filter, whose smallest unit is a millisecond."""
    delays = [f"rdelay={delay_ms}ms", f"wdelay={delay_ms}ms"]
    options = ["-t", str(threads), "--filter=delay"]
    return nbdkit(directory, "unix", options, delays, f"nbdkit-{threads} {delay_ms}ms")


def qemu_nbd(directory, kind, image, name):
    """Starts qemu-nbd. `image` has the form of QEMU's --image-opts."""
    server = Server(name, directory, kind)
    place = ["-k", server.socket] if kind == "unix" else ["-b", "127.0.0.1", "-p", str(server.port)]
    # -t: stay when the last client leaves. -e: the maximum number of clients.
    return server.start(["qemu-nbd", "-t", "-e", "1000", *place, "--image-opts", image])


def qemu_storage_daemon(directory, kind, image, name):
    server = Server(name, directory, kind)
    place = f"unix,addr.path={server.socket}" if kind == "unix" else f"inet,addr.host=127.0.0.1,addr.port={server.port}"
    return server.start(
        [
            "qemu-storage-daemon",
            "--blockdev",
            f"{image},node-name=disk",
            "--nbd-server",
            f"addr.type={place}",
            "--export",
            "type=nbd,id=export,node-name=disk,name=,writable=on",
        ]
    )


def null_image():
    return f"driver=null-co,size={SIZE}"


def raw_image(directory, name):
    """Makes an image file for only one server, because QEMU locks the file."""
    path = f"{directory}/{name}.img"
    with open(path, "wb") as file:
        file.truncate(SIZE)
    return f"driver=raw,file.driver=file,file.filename={path}"


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
