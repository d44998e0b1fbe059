"""A daemon, and its disks by name."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import deque
from contextlib import contextmanager
from typing import Any, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Set

from ._binary import find_program
from ._disk import Disk
from ._errors import CheckFailed, DashpotError
from ._figures import InFlight, Json
from ._http import Api, default_address
from ._rule import Rule

# The exit status of `dashpot check` when an expectation does not hold.
_DOES_NOT_HOLD = 3


class Daemon(Mapping[str, Disk]):
    """A daemon, as a mapping from the names of its disks to the disks."""

    def __init__(self, address: str, program: Optional[str] = None) -> None:
        self.api = Api(address)
        self._program = program
        #: The rules whose `with` blocks this process is in.
        self.armed: Set[Rule] = set()
        #: The last rules whose `with` blocks have ended.
        self.ended_rules: Deque[Rule] = deque(maxlen=100)
        #: The last descriptions of the daemon that were made when a `with` block failed.
        self.failures: Deque[str] = deque(maxlen=3)

    def __getitem__(self, name: str) -> Disk:
        names = self._names()
        if name not in names:
            raise KeyError(f"no disk '{name}': there is {', '.join(names)}")
        return Disk(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    # Unlike other mappings, a daemon is equal only to itself, and is true even if it has no disks.
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __bool__(self) -> bool:
        return True

    @property
    def version(self) -> str:
        """The daemon's version."""
        return str(self.api.get("/v1/version")["version"])

    @property
    def environment(self) -> Dict[str, str]:
        """The environment variable by which dashpot's commands find this daemon."""
        return {"DASHPOT_API": self.api.address}

    def outcomes(self) -> List[Json]:
        """The last figures of rules whose daemon has ended; empty for a daemon that this process has not started."""
        return []

    def remember(self) -> None:
        """Keeps the present figures of the armed rules, because the daemon is about to end."""
        for rule in list(self.armed):
            rule.remember()

    def rules(self) -> List[Json]:
        """All armed rules, as `dashpot list --json` shows them."""
        return list(self.api.get("/v1/rules"))

    def reset(self) -> None:
        """Restores the state of the lab: only its rules are armed, and no disk is suspended. Releases held I/Os."""
        self.remember()
        self.raise_failed(self.api.post("/v1/reset"))

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """Undoes what a `with` block leaves: clears the rules that were armed in it, releases the I/Os that they hold,
        and resumes the disks that were suspended in it. Earlier rules and suspensions stay."""
        rules = {rule["id"] for rule in self.rules()}
        suspended = {disk.name for disk in self.values() if disk.state()["suspended"]}
        try:
            yield
        finally:
            for rule in self.rules():
                if rule["id"] not in rules:
                    self.clear_rule(rule["id"])
            for disk in self.values():
                if disk.name not in suspended and disk.state()["suspended"]:
                    disk.resume()

    def clear_rule(self, number: int, release: bool = True) -> None:
        """Clears the rule with this number. Does nothing if it has been cleared already."""
        try:
            self.api.send("DELETE", f"/v1/rules/{number}?release={str(release).lower()}")
        except DashpotError as error:
            if error.status != 404:
                raise

    def check(self, *expectations: str) -> str:
        """Checks figures as `dashpot check` does: `d.check("db.flush.p99 < 50ms")`.

        The figures count from the daemon's start or, for a rule, from when the rule was armed. Raises
        `CheckFailed` with every observed value if an expectation does not hold, and returns the lines of the
        outcomes otherwise. `check` runs the program `dashpot`, because the API has no checks.
        """
        done = self._command(["check", *expectations])
        return _judge(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def checking(self, *expectations: str) -> Iterator[None]:
        """Like `check`, but only for the I/O of a `with` block."""
        # `check -- CMD` counts from the start of CMD. This CMD prints a line when it has started, and ends
        # when its input ends.
        wait = ["sh", "-c", "echo; exec cat"]
        command = self._popen(["check", *expectations, "--", *wait])
        with command:
            assert command.stdout is not None
            if not command.stdout.readline():
                _judge(command.wait(), "", command.communicate()[1])
            try:
                yield
            except BaseException:
                command.kill()
                raise
            _, said = command.communicate()
            _judge(command.returncode, said, said)

    @contextmanager
    def record(self, output: str, *disks: str, options: Sequence[str] = ()) -> Iterator[None]:
        """Records every I/O of a `with` block as `dashpot record` does, in the directory `output`.

        Without disks it records all disks. `record` runs the program `dashpot`, because the API does not record.
        """
        chosen = [word for disk in disks for word in ("-d", disk)]
        command = self._popen(["record", "-o", output, *chosen, *options])
        with command:
            assert command.stdout is not None
            if not command.stdout.readline():
                raise DashpotError(command.communicate()[1].strip())
            try:
                yield
            finally:
                command.send_signal(signal.SIGINT)
                _, said = command.communicate()
            if command.returncode != 0:
                raise DashpotError(said.strip())

    def describe(self, oldest: int = 5) -> str:
        """The rules and the oldest I/Os in flight, in words, for the report of a failing test."""
        rules = [_of_rule(rule) for rule in self.rules()]
        flying = [f"  {disk.name}: {_of_zio(zio)}" for disk in self.values() for zio in disk.in_flight(oldest)]
        return "\n".join(["rules:", *(rules or ["  none"]), "oldest I/Os in flight:", *(flying or ["  none"])])

    def raise_failed(self, changed: Json) -> None:
        """Raises an error if a request for all disks changed only some of them."""
        failed = [f"{one['disk']}: {one['error']}" for one in changed["failed"]]
        if failed:
            raise DashpotError("; ".join(failed))

    def _names(self) -> List[str]:
        return [one["name"] for one in self.api.get("/v1/exports") if one["layer"] == "disk"]

    def _words(self, words: Sequence[str]) -> List[str]:
        return [self._program or find_program(), *words]

    def _variables(self) -> Dict[str, str]:
        # The address may have a token, and other users can read the words of a command.
        return {**os.environ, **self.environment}

    def _command(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        words, env = self._words(words), self._variables()
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env)

    def _popen(self, words: Sequence[str]) -> subprocess.Popen[str]:
        words, env, pipe = self._words(words), self._variables(), subprocess.PIPE
        return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env)


def connect(api: Optional[str] = None) -> Daemon:
    """Connects to a daemon that runs already: at `api`, or else at $DASHPOT_API, or else at the default address of
    this user's `dashpot serve`."""
    daemon = Daemon(api or default_address())
    daemon.version  # This request raises now if no daemon answers at the address.
    return daemon


def _judge(status: int, outcomes: str, said: str) -> str:
    if status == 0:
        return outcomes
    if status == _DOES_NOT_HOLD:
        raise CheckFailed("\n" + outcomes.rstrip())
    raise DashpotError(said.strip())


def _of_rule(rule: Json) -> str:
    name = f" '{rule['name']}'" if rule["name"] else ""
    counts = ", ".join(f"{word} {rule[word]}" for word in ("matched", "injected", "held", "late", "now"))
    why = f"; {rule['why_nothing']}" if rule["why_nothing"] else ""
    achieved = rule["achieved"]["p50_ns"]
    median = f", achieved p50 {_time(achieved)}" if achieved is not None else ""
    return f"  {rule['id']}{name} {rule['disk']} {rule['rule']}: {counts}{median}{why}"


def _of_zio(zio: InFlight) -> str:
    rule = f", rule {zio.rule}" if zio.rule is not None else ""
    return f"{zio.op} {zio.length_bytes} at {zio.offset_bytes}: {_time(zio.age_ns)}, {zio.wait}{rule}, {zio.client}"


def _time(nanoseconds: Any) -> str:
    return f"{nanoseconds / 1e6:.3f}ms"
