"""A libnbd client that records when each of its requests was sent and answered."""

import pytest

nbd = pytest.importorskip("nbd", reason="python3-libnbd is missing: make deps")

import time  # noqa: E402


class Request:
    """One request. `error` is 0 after success, otherwise an errno, and None before the answer."""

    def __init__(self):
        self.sent = time.monotonic()
        self.answered = None
        self.error = None

    def done(self, error):
        self.answered = time.monotonic()
        self.error = error.value
        return 1

    @property
    def latency(self):
        return self.answered - self.sent


class Client:
    """One connection. Requests are sent at once, and answered in `wait`."""

    def __init__(self, daemon, disk="d"):
        self.handle = nbd.NBD()
        self.handle.set_strict_mode(0)
        self.handle.connect_uri(daemon.uri(disk))

    def read(self, offset=0, length=4096):
        request = Request()
        self.handle.aio_pread(nbd.Buffer(length), offset, request.done)
        return request

    def write(self, offset=0, length=4096, flags=0):
        request = Request()
        self.handle.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(length)), offset, request.done, flags)
        return request

    def flush(self):
        request = Request()
        self.handle.aio_flush(request.done)
        return request

    def zero(self, offset=0, length=4096):
        request = Request()
        self.handle.aio_zero(length, offset, request.done)
        return request

    def trim(self, offset=0, length=4096):
        request = Request()
        self.handle.aio_trim(length, offset, request.done)
        return request

    def close(self):
        """Closes the connection at once, even with requests in flight."""
        del self.handle

    def wait(self, *requests):
        """Waits until all these requests are answered. Raises an error if libnbd reports one meanwhile."""
        while any(request.answered is None for request in requests):
            self.handle.poll(1000)
        return requests[0] if len(requests) == 1 else requests

    def many(self, count, depth, issue=None):
        """Sends `count` requests, with at most `depth` of them in flight."""
        issue = issue or self.read
        requests, flying = [], []
        while len(requests) < count or flying:
            while len(requests) < count and len(flying) < depth:
                requests.append(issue(4096 * len(requests) % (1 << 20)))
                flying.append(requests[-1])
            self.handle.poll(1000)
            flying = [request for request in flying if request.answered is None]
        return requests
