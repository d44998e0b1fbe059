"""A proxy to the API of a daemon."""

import contextlib
import socket
import threading


class Between:
    """A proxy to a daemon's API, which can hang in place of the daemon."""

    def __init__(self, daemon, path):
        self.path, self.daemon, self.hangs = path, daemon, threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self.daemon.api))
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, sink):
        with contextlib.suppress(OSError):
            while some := source.recv(1 << 16):
                if not self.hangs.is_set():
                    sink.sendall(some)
            sink.shutdown(socket.SHUT_WR)
