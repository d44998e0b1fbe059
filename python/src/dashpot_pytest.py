"""The pytest plugin of dashpot: fixtures, a marker, and what a failing test's report shows.

Every pytest of the environment imports this module, so it imports dashpot only when a test asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, List, Optional

import pytest

if TYPE_CHECKING:
    import dashpot as library

_MARKER = (
    "slow_disk(words, disk=None, allow_idle=False): arm a rule, in the words of `dashpot inject`, while the test runs"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "dashpot_disks",
        "the disks of the fixture `dashpot`, one a line, in the words of `dashpot serve -d`: db=ram,size=1G",
        type="linelist",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture(scope="session")
def dashpot(request: pytest.FixtureRequest) -> Iterator[library.Daemon]:
    """A daemon for the session, with the disks of `dashpot_disks`. Each worker of pytest-xdist has its own.

    If `dashpot_disks` names no disks, this is the daemon at $DASHPOT_API, as under `dashpot run -- pytest`, or
    else a daemon with the disk `db`, a RAM disk of 1G.
    """
    import os

    import dashpot as library

    disks = request.config.getini("dashpot_disks")
    if not disks and "DASHPOT_API" in os.environ:
        yield library.connect()
        return
    with library.run(*(disks or ["db=ram,size=1G"])) as captive:
        yield captive


def _disk(dashpot: library.Daemon) -> Iterator[library.Disk]:
    """The daemon's first disk. At the end of the scope, the rules that were armed within it are cleared, and the disks
    that were suspended within it resume. Rules and suspensions from before stay, such as those of wider fixtures."""
    with dashpot.undoing():
        yield next(iter(dashpot.values()))


dashpot_disk = pytest.fixture(_disk, name="dashpot_disk")
dashpot_disk_module = pytest.fixture(_disk, scope="module", name="dashpot_disk_module")
dashpot_disk_session = pytest.fixture(_disk, scope="session", name="dashpot_disk_session")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Gives a daemon to each test with the marker `slow_disk`, even if the test asks for no fixture."""
    if item.get_closest_marker("slow_disk"):
        names: List[str] = getattr(item, "fixturenames", [])
        if "dashpot" not in names:
            names.append("dashpot")


def _daemon(item: pytest.Item) -> Optional[library.Daemon]:
    """The daemon of a test: the value of the fixture, which a test suite may have redefined."""
    found = getattr(item, "funcargs", {}).get("dashpot")
    if found is None:
        return None
    import dashpot as library

    return found if isinstance(found, library.Daemon) else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Arms the rules of the markers after the set-up and before the test; an idle rule fails the test."""
    markers = list(item.iter_markers("slow_disk"))
    if not markers:
        yield
        return
    rules = _armed(item, markers)
    outcome: Any = yield
    error = outcome.excinfo[1] if outcome.excinfo else None
    for rule in reversed(rules):
        error = _ended(rule, error)
    if error is not None and not outcome.excinfo:
        _fail(outcome, error)


def _armed(item: pytest.Item, markers: List[pytest.Mark]) -> List[library.Rule]:
    """Arms the rules of the markers. If one cannot be armed, clears the others."""
    daemon = _daemon(item)
    if daemon is None:
        pytest.fail("the marker slow_disk needs a fixture `dashpot` that is a dashpot.Daemon")
    rules: List[library.Rule] = []
    try:
        for marker in reversed(markers):
            rules.append(_of_marker(daemon, *marker.args, **marker.kwargs).__enter__())
    except BaseException:
        for rule in rules:
            rule.clear()
        raise
    return rules


def _of_marker(
    daemon: library.Daemon, words: str, disk: Optional[str] = None, allow_idle: bool = False
) -> library.Rule:
    chosen = daemon[disk] if disk else next(iter(daemon.values()))
    return chosen.rule(words, allow_idle=allow_idle)


def _ended(rule: library.Rule, error: Optional[BaseException]) -> Optional[BaseException]:
    """Clears a rule. Returns the error of the test if there is one, or else the error of the rule."""
    try:
        rule.__exit__(type(error) if error else None, error, None)
    except Exception as cause:
        return error or cause
    return error


def _fail(outcome: Any, error: BaseException) -> None:
    if hasattr(outcome, "force_exception"):
        outcome.force_exception(error)
    else:  # pluggy before 1.1
        outcome._excinfo = (type(error), error, error.__traceback__)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Shows the rules and the oldest I/Os beside a failure, and puts what rules injected into JUnit's properties."""
    daemon = _daemon(item)
    if daemon is None or call.when != "call":
        yield
        return
    while daemon.ended_rules:
        item.user_properties.extend(_properties(daemon.ended_rules.popleft()))
    outcome: Any = yield
    report = outcome.get_result()
    failures = list(daemon.failures)
    daemon.failures.clear()
    if report.failed:
        report.sections.append(("dashpot", failures[0] if failures else _described(daemon)))


def _properties(rule: library.Rule) -> List[Any]:
    label = f"dashpot {rule.disk} {rule.words}"
    state = rule.state()
    medians = [one["achieved"]["p50_ns"] for one in state if one["achieved"]["p50_ns"] is not None]
    injected = (f"{label} injected", sum(one["injected"] for one in state))
    return [injected, *((f"{label} achieved_p50_ns", median) for median in medians)]


def _described(daemon: library.Daemon) -> str:
    from dashpot import DashpotError

    try:
        return daemon.describe()
    except DashpotError as error:
        return str(error)
