"""Slow disks in tests, in the words of the command line.

    with dashpot.run("db=ram,size=1G") as d:
        with d["db"].rule("-D 20ms -T flush") as slow:
            ...                          # the program under test, on d["db"].uri
            assert slow.held > 0

If a rule has injected nothing by the end of its `with` block, it raises `NothingInjected`, with the daemon's reason.
Times are integers in nanoseconds, and their names end in `_ns`.
"""

from ._binary import find_program
from ._captive import Captive, run
from ._daemon import Daemon, connect
from ._disk import Disk, Suspended
from ._errors import CheckFailed, DashpotError, NothingInjected, NotStarted
from ._figures import InFlight, Latency, OpLatency, Summary
from ._rule import Rule
from ._scenario import Scenario

__version__ = "0.1.0"

__all__ = [
    "Captive",
    "CheckFailed",
    "Daemon",
    "DashpotError",
    "Disk",
    "InFlight",
    "Latency",
    "NotStarted",
    "NothingInjected",
    "OpLatency",
    "Rule",
    "Scenario",
    "Summary",
    "Suspended",
    "connect",
    "find_program",
    "run",
]
