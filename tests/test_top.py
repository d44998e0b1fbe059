"""Drives the full screen with keys, in a real terminal under tmux."""

import os
import re
import shlex
import signal
import subprocess

import pools
import pytest
from conftest import BINARY, HANG_LIMIT, eventually, requires, run
from kernel import loop_in_memory, takes_a_kernel

pytestmark = requires("tmux")


class Terminal:
    """A terminal in a separate tmux, with a shell that shows the terminal's settings before and after
    `dashpot top`."""

    def __init__(self, directory, size, command, env):
        self.socket = directory / "tmux"
        self.states = directory / "stty"
        width, height = size
        script = (
            f"stty -g > {self.states}.before; {command}; echo $? > {self.states}.code; "
            f"stty -g > {self.states}.after; echo the shell goes on; read _"
        )
        self.tmux(
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            width,
            "-y",
            height,
            *[word for pair in env.items() for word in ("-e", "=".join(pair))],
            "sh",
            "-c",
            script,
        )

    def tmux(self, *words):
        return subprocess.run(
            ["tmux", "-S", str(self.socket), *map(str, words)],
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG_LIMIT,
        ).stdout

    def screen(self, *how):
        return self.tmux("capture-pane", "-p", *how)

    def sees(self, *texts):
        """Waits until all of these words are on the screen."""
        eventually(lambda: all(text in self.screen() for text in texts), f"{texts} in\n{self.screen()}")

    def type(self, *keys):
        for key in keys:
            self.tmux("send-keys", key)

    def words(self, text):
        self.tmux("send-keys", "-l", "--", text)

    def pid(self):
        """The id of the process of `dashpot top`."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        return int(run("pgrep", "-P", shell, "-f", "dashpot").stdout.split()[0])

    def check_restored(self, code=0):
        """Checks that the program has ended and has restored the terminal."""
        self.sees("the shell goes on")
        assert self.states.with_suffix(".code").read_text().strip() == str(code)
        before, after = (self.states.with_suffix(f".{when}").read_text() for when in ("before", "after"))
        assert before == after
        modes = self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}")
        assert modes.split() == ["0", "1"], "the full screen is left, and the cursor is shown"


@pytest.fixture
def terminal(directory):
    """Starts `dashpot top` in a terminal, for a daemon or without one."""
    terminals = []

    def start(daemon, *arguments, size=(100, 30), env=()):
        home = directory / f"t{len(terminals)}"
        home.mkdir()
        api = {"DASHPOT_API": f"unix:{daemon.api}"} if daemon else {}
        env = {**api, **dict(env)}
        command = shlex.join([BINARY, "top", *map(str, arguments)])
        terminals.append(Terminal(home, size, command, env))
        return terminals[-1]

    yield start
    for one in terminals:
        subprocess.run(["tmux", "-S", str(one.socket), "kill-server"], capture_output=True)


def test_a_rule_lives_by_keys(daemon, terminal):
    top = terminal(daemon, "200ms")
    top.sees("disks by name", "no rule is armed")
    top.type("a")
    top.words("-D 10:1")
    top.type("Enter")
    top.sees("did you mean 10ms:1?")
    assert daemon.rules() == {}
    top.type("C-u")
    top.words("-D 10ms:1 -T read --name slow")
    top.type("Enter")
    top.sees("rule 1 (slow) on d: -D 10ms:1 -T read", "nothing matched yet: -T read")
    assert daemon.rules("d")[1]["name"] == "slow"
    top.type("u")
    top.sees("> -D 10ms:1 -T read")
    top.type("C-u")
    top.words("-D 20ms:2 -T write")
    top.type("Enter")
    top.sees("rule 1 (slow) on d: -D 20ms:2 -T write")
    assert daemon.rules("d")[1]["rule"] == "-D 20ms:2 -T write"
    top.type("c", "y")
    top.sees("cleared rule 1", "no rule is armed")
    assert daemon.rules() == {}
    top.type("q")
    top.check_restored()


def test_a_disk_is_suspended_and_resumed(daemon, terminal):
    top = terminal(daemon)
    top.sees("disks by name")
    top.type("z")
    top.sees("d is suspended", "d: suspended for")
    assert daemon.disk()["suspended"]
    top.type("z")
    top.sees("d goes on", " ok")
    assert not daemon.disk()["suspended"]
    top.type("C-c")
    top.check_restored()


def test_a_load_is_seen(daemon, terminal):
    daemon.cli("inject", "d", "-D", "10ms")
    top = terminal(daemon, "200ms", size=(120, 40))
    top.sees("no client is connected")
    load = daemon.start("load", daemon.uri("d"), "--depth", "4", "--write", "50%")
    top.sees("clients of d", "held, rule 1", "10ms", "█")
    figures = re.compile(rf"pid={load.pid} +1 +[1-9]\d* ")
    eventually(lambda: figures.search(top.screen()), "the client's operations per second")
    top.tmux("resize-window", "-x", "80", "-y", "24")
    top.sees("? help", "d over time")
    assert len(top.screen().splitlines()) == 24
    top.tmux("resize-window", "-x", "50", "-y", "10")
    top.sees("50x10 is too small")
    top.type("q")
    top.check_restored()
    load.send_signal(signal.SIGINT)
    load.communicate(timeout=HANG_LIMIT)


def test_a_throttle_of_a_daemon_is_seen_at_work(serve, directory, terminal):
    daemon = serve(pools.lab(directory, "openzfs", "mirror")[0])
    daemon.cli("inject", "a", "-D", "5ms:1", "-T", "write")
    top = terminal(daemon, "200ms", size=(120, 40))
    top.sees("volumes and disks by name", "write throttle", "transaction groups of tank")
    load = daemon.start("load", daemon.uri(pools.VOLUME), "--depth", "8", "--write", "100%")
    top.sees("clients of tank/v", f"pid={load.pid}")
    filled = re.compile(r"tank +openzfs +\d+(\.\d+)?[KM] +\[[^ ]")
    eventually(lambda: filled.search(top.screen()), "dirty data in the bar")
    eventually(lambda: re.search(r"\d+ syncing +[\d.]+[KM]", top.screen()), "a txg that syncs")
    load.send_signal(signal.SIGINT)
    load.communicate(timeout=HANG_LIMIT)
    top.type("q")
    top.check_restored()


def test_an_interval_in_which_the_daemon_was_stopped_says_how_long_it_was(daemon, terminal):
    top = terminal(daemon, "2")
    top.sees("disks by name")
    daemon.process.send_signal(signal.SIGSTOP)
    top.sees("NO ANSWER for")
    daemon.process.send_signal(signal.SIGCONT)
    # Wait until the next interval has ended.
    top.sees("Interval:", "s instead of 2 s")
    top.type("q")


def test_a_daemon_that_goes_away_is_tried_again(serve, terminal):
    daemon = serve("-d", "d=ram,size=64M")
    top = terminal(daemon, "200ms")
    top.sees("disks by name")
    daemon.process.send_signal(signal.SIGSTOP)
    top.sees("NO ANSWER for")
    daemon.process.send_signal(signal.SIGCONT)
    eventually(lambda: "NO ANSWER" not in top.screen(), "an answer")
    daemon.stop()
    top.sees("NO FIGURES, trying again", "no daemon at", "d")
    again = serve("-d", "other=null,size=1G")
    os.symlink(again.api, daemon.api)
    top.sees("other")
    assert "NO FIGURES" not in top.screen()
    top.type("q")
    top.check_restored()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])
def test_a_signal_gives_the_terminal_back(daemon, terminal, name):
    top = terminal(daemon)
    top.sees("disks by name")
    os.kill(top.pid(), getattr(signal, name))
    top.check_restored()


@takes_a_kernel
def test_a_device_that_vanishes_is_said_to_on_the_screen(daemon, terminal):
    with loop_in_memory() as loop, loop_in_memory() as other:
        top = terminal(daemon, "-d", loop.name, "-d", other.name, "200ms")
        top.sees(loop.name, other.name)
        loop.detach()
        top.sees("vanished")
        assert "up to then" not in top.screen(), "nothing else writes over the screen"
        other.detach()
        top.sees("nothing is left to watch")
        top.check_restored(1)


def test_no_colour(daemon, terminal):
    for env, coloured in [({}, True), ({"NO_COLOR": "1"}, False)]:
        top = terminal(daemon, env=env)
        top.sees("disks by name")
        screen = top.screen("-e")
        assert ("\x1b[36m" in screen or "\x1b[38;5;6m" in screen) == coloured, repr(screen)
        top.type("q")
        top.check_restored()


def test_a_pipe_is_no_terminal(daemon):
    refusal = daemon.cli("top", code=1)
    assert "dashpot iostat -x 1" in refusal.stderr
    assert refusal.stdout == ""


def test_what_cannot_be_watched_is_said_before_the_screen_is_taken(daemon, directory, terminal):
    top = terminal(daemon, "-d", "nowhere")
    top.sees("'nowhere' is not a block device")
    top.check_restored(1)
    top = terminal(daemon, env={"DASHPOT_API": f"unix:{directory}/none"})
    top.sees("no daemon at", "dashpot serve")
    top.check_restored(1)


POOL = """
[disk.c1t1d0]
store = "null"
size  = "4G"
bandwidth = "10M"
[disk.log]
store = "null"
size  = "1G"
service = "1ms"
[pool.tank]
disks = ["c1t1d0"]
ram   = "8G"
zfs_dirty_data_max = "32M"
[volume."tank/foo"]
size  = "1G"
write = "THROTTLE"
[workload.flood]
target  = "tank/foo"
threads = 10
inside  = "1ms"
block   = "8K"
pattern = "sequential"
[workload.log]
target = "log"
rate   = 500
block  = "4K"
[sim]
lasts = "LASTS"
"""


@pytest.fixture
def lab(directory):
    """Writes a lab with a pool whose clients are too fast for its disk, and a disk outside of pools."""

    def write(throttle="openzfs", lasts="60m"):
        path = directory / "flood.toml"
        path.write_text(POOL.replace("THROTTLE", throttle).replace("LASTS", lasts))
        return path

    return write


@pytest.mark.parametrize("throttle", ["openzfs", "legacy", "none"])
def test_a_simulated_throttle_is_seen_at_work(lab, terminal, throttle):
    top = terminal(None, "--sim", lab(throttle), "--speed", "10", "200ms", size=(120, 40))
    top.sees("1 volume, 2 disks", "s of 3600.0 s  flood", "tank/foo", "transaction groups of tank", "syncing")
    row = rf"tank +{throttle} .*\[█+.?.*\]"
    eventually(lambda: re.search(row, top.screen()), "the throttle fills up")
    # Matches a line that shows that the throttle delays or stops a write.
    held = re.compile(rf"{throttle} .*\] .* (stop|\d[\d.]*[mun]s) +[1-9]\d* ")
    eventually(lambda: held.search(top.screen()), "writes that wait")
    eventually(lambda: "committed" in top.screen(), "a txg on the disks")
    top.sees("clients of tank/foo", "flood")
    top.type("q")
    top.check_restored()


def test_rules_and_suspension_act_on_simulated_disks(lab, terminal):
    top = terminal(None, "--sim", lab(), "200ms", size=(120, 40))
    top.sees("tank/foo", "a volume has none")
    top.type("a")
    top.sees("only disks have rules and can be suspended")
    top.type("j", "j")
    top.sees("rules of log", "no rule is armed")
    top.type("a")
    top.words("-D 50ms -T write --name slow")
    top.type("Enter")
    top.sees("rule 1 (slow) on log: -D 50ms -T write", "held, rule 1", "50.0ms")
    top.type("u")
    top.type("C-u")
    top.words("-D 20ms --range 4G..5G")
    top.type("Enter")
    top.sees("beyond the end of disk log")
    top.type("C-u")
    top.words("-D 20ms -T write")
    top.type("Enter")
    top.sees("rule 1 (slow) on log: -D 20ms -T write")
    top.type("c", "y")
    top.sees("cleared rule 1", "no rule is armed")
    top.type("z")
    top.sees("log is suspended", "log: suspended for")
    top.type("z")
    top.sees("log goes on")
    eventually(lambda: "suspended" not in top.screen(), "a disk that goes on")
    top.type("C-c")
    top.check_restored()


def test_a_simulation_stays_on_its_last_look(lab, terminal):
    top = terminal(None, "--sim", lab(lasts="2s"), "10m", size=(120, 40))
    # The screen is updated when the simulation ends, and not only when the interval ends.
    top.sees("ENDED at 2.0 s", "tank/foo", "openzfs")
    at_the_end = top.screen()
    for key in ["a", "z"]:
        top.type("j", key)
        top.sees("the simulation has ended")
    top.type("k", "k", "k")
    eventually(lambda: top.screen() == at_the_end, "the last look")
    top.type("q")
    top.check_restored()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])
def test_a_signal_ends_a_simulation(lab, terminal, name):
    # No machine can simulate this fast, so the simulation never has to wait for the clock.
    top = terminal(None, "--sim", lab(), "--speed", "1000")
    top.sees("write throttle")
    os.kill(top.pid(), getattr(signal, name))
    top.check_restored()


def test_a_lab_that_is_none_is_said_before_the_screen_is_taken(directory, lab, terminal):
    top = terminal(None, "--sim", directory / "nowhere.toml")
    top.sees("nowhere.toml", "cannot be read")
    top.check_restored(1)
    bad = lab()
    bad.write_text(bad.read_text().replace("bandwidth", "bandwith"))
    top = terminal(None, "--sim", bad, size=(160, 30))
    top.sees("flood.toml:5: [disk.c1t1d0] bandwith", "did you mean 'bandwidth'?")
    top.check_restored(1)
    still = directory / "still.toml"
    still.write_text('[disk.d]\nstore = "null"\nsize = "1G"\n[workload.w]\ntarget = "d"\n')
    top = terminal(None, "--sim", still)
    top.sees("still.toml: at 0 ns: time stands still")
    top.check_restored(1)


def test_a_simulation_that_falls_behind_says_so_all_the_time(lab, terminal):
    top = terminal(None, "--sim", lab(lasts="100000s"), "--speed", "1000", size=(120, 40))
    top.sees("falls behind", "Interval:")
    assert all("falls behind" in top.screen() for _ in range(20))
    top.type("q")
    top.check_restored()


def test_a_simulation_has_no_daemon_and_no_kernel(lab):
    path = str(lab())
    for words in (["-k"], ["-d", "vda"]):
        assert "cannot be used with" in run(BINARY, "top", "--sim", path, *words, code=2).stderr
    for words in (["--api", "unix:/x", "top"], ["top", "--api", "unix:/x"]):
        assert "leave --api out" in run(BINARY, *words, "--sim", path, code=2).stderr
    # `top --sim` ignores an address in the environment, which is meant for other commands. The command fails only
    # because there is no terminal here.
    assert "terminal" in run(BINARY, "top", "--sim", path, code=1, env={"DASHPOT_API": "unix:/x"}).stderr
    assert "dashpot sim LAB" in run(BINARY, "top", "--sim", path, code=1).stderr
