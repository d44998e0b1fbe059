"""Requests to the daemon's HTTP API, over a unix socket or TCP."""

from __future__ import annotations

import http.client
import json
import os
import socket
import struct
from contextlib import suppress
from typing import Any, Callable, Optional
from urllib.parse import parse_qs, quote, urlsplit

from ._errors import DashpotError
from ._trust import stranger


class Api:
    """The API at an address. Each request has a connection of its own, so threads may share an `Api`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._unix: Optional[str] = None
        self._tcp = ("", 0)
        self._token: Optional[str] = None
        #: Says why no daemon answers, as far as the owner of the daemon knows.
        self.explain_absence: Callable[[], str] = lambda: ""
        if address.startswith("unix:") and hasattr(socket, "AF_UNIX"):
            self._unix = address[len("unix:") :]
        elif address.startswith(("http://", "tcp:")):
            url = urlsplit(address.replace("tcp:", "http://", 1) if address.startswith("tcp:") else address)
            self._tcp = (url.hostname or "", url.port or 80)
            self._token = parse_qs(url.query).get("token", [None])[0] or os.environ.get("DASHPOT_TOKEN")
        else:
            raise DashpotError(
                f"{address!r} is no address of an API here",
                "write unix:PATH (but on Windows, Python has no unix sockets), the http://HOST:PORT/?token=… that serve prints, or tcp:HOST:PORT with $DASHPOT_TOKEN",
            )

    def get(self, path: str) -> Any:
        return self.send("GET", path)

    def post(self, path: str, body: Any = None) -> Any:
        return self.send("POST", path, body)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Sends a request, and waits for the answer without a time limit."""
        connection = self._connection()
        try:
            return json.loads(self._ask(connection, method, path, body).read())
        finally:
            connection.close()

    def lease(self, path: str, body: Any) -> tuple[Any, Lease]:
        """Sends a request whose effect ends with the connection. Returns the answer and the lease."""
        connection = self._connection()
        try:
            answer = self._ask(connection, "POST", path, body)
            return json.loads(answer.readline()), Lease(connection, answer)
        except BaseException:
            connection.close()
            raise

    def _place(self) -> str:
        """The address without its token, because messages may be in the log of a pipeline."""
        return self.address if self._unix is not None else self.address.partition("?")[0]

    def _connection(self) -> http.client.HTTPConnection:
        if self._unix is not None:
            return _UnixConnection(self._unix)
        return http.client.HTTPConnection(*self._tcp)

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any
    ) -> http.client.HTTPResponse:
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            with suppress(BrokenPipeError):
                # A daemon that refuses a request answers before it reads the content.
                connection.request(method, path, content, headers)
            answer = connection.getresponse()
        except OSError as error:
            absence = self.explain_absence()
            raise DashpotError(f"no daemon answers at {self._place()} ({error}){absence}") from error
        except http.client.HTTPException as error:
            absence = self.explain_absence()
            raise DashpotError(f"the daemon at {self._place()} hung up ({error!r}){absence}") from error
        if answer.status >= 400:
            raise _refusal(answer)
        return answer


class Lease:
    """An answer that stays open. The daemon clears the leased rules when the lease is closed, or when this process
    ends.
    """

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._answer = answer

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.connect(self._path)
            self._check_listener()
        except BaseException:
            self.close()
            raise

    def _check_listener(self) -> None:
        """Refuses the program of another user at a path where any user can listen."""
        if not hasattr(socket, "SO_PEERCRED"):
            return
        peer = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, listener, _ = struct.unpack("3i", peer)
        if stranger(self._path, listener) is not None:
            raise DashpotError(
                f"user {listener} listens at unix:{self._path}, where any user can listen: nothing was sent",
                "name the socket of your own daemon, or run as that user",
            )


def _refusal(answer: http.client.HTTPResponse) -> DashpotError:
    text = answer.read()
    try:
        said = json.loads(text)
        return DashpotError(said["error"], said.get("remedy"), answer.status)
    except (ValueError, KeyError, TypeError):
        return DashpotError(f"the answer has status {answer.status}: {text[:200]!r}", None, answer.status)


def segment(name: object) -> str:
    """The name, quoted as one segment of a URL's path."""
    return quote(str(name), safe="")


def default_address() -> str:
    """The address of this user's daemon: $DASHPOT_API, or the default address of `dashpot serve`."""
    given = os.environ.get("DASHPOT_API")
    if given:
        return given
    if not hasattr(os, "getuid"):
        raise DashpotError("no address of an API is given", "set $DASHPOT_API to that of a daemon in a container")
    return f"unix:{_runtime_dir(os.getuid())}/api.sock"


def _runtime_dir(uid: int) -> str:
    """The directory of the sockets of a user's daemon."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given and _owner(given) in (uid, 0):
        return f"{given}/dashpot"
    if _owner(f"/run/user/{uid}") == uid:
        return f"/run/user/{uid}/dashpot"
    if uid == 0 and os.access("/run", os.W_OK):
        return "/run/dashpot"
    return f"/tmp/dashpot-{uid}"


def _owner(directory: str) -> Optional[int]:
    return os.stat(directory).st_uid if os.path.isdir(directory) else None
