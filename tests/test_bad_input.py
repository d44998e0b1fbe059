"""Bad input is refused as a whole: the message names the option, the value and the remedy; nothing is
started, changed or left behind.
"""

import os
import re
import subprocess

import pytest
from conftest import BINARY, run

USAGE, REFUSED = 2, 1


@pytest.fixture
def refused(directory):
    """Starts a daemon that must refuse to start. Returns its message."""

    def serve(*arguments, code=REFUSED, under=()):
        home = directory / "refused"
        home.mkdir()
        done = run(
            *under,
            BINARY,
            "serve",
            *arguments,
            "--nbd",
            f"unix:{home}/nbd.sock",
            "--api",
            f"unix:{home}/api.sock",
            "--ready-file",
            home / "ready",
            code=code,
        )
        assert list(home.iterdir()) == [], "something was left behind"
        assert done.stdout == ""
        assert "panicked" not in done.stderr
        return done.stderr

    return serve


def names(message, *words):
    missing = [word for word in words if str(word) not in message]
    assert not missing, f"{missing} not in: {message}"


# Disks.


@pytest.mark.parametrize(
    "disk, words",
    [
        ("d=rom", ["rom", "ram", "file:"]),
        ("d=ram,size=0", ["d", "size"]),
        ("d=ram,size=1.5X", ["1.5X"]),
        ("d=ram,size=-1G", ["-1G"]),
        ("d=ram,size=99999999999T", ["99999999999T"]),
        ("d=ram,size=64M,sise=1G", ["sise", "size"]),
        ("d=ram,size=64M,block=3K", ["3K"]),
        ("d=ram,size=64M,block=128K", ["128K"]),
        ("d=ram,size=1000,block=512", ["1000", "512", "multiple"]),
        ("d=ram,size=1M,size=2M", ["size", "twice"]),
        ("d=null,size=16777215T", ["16777215T", "too large"]),
        ("=ram", ["=ram"]),
        ("x y=ram", ["x y", "letters"]),
        ("d", ["d"]),
        ("d=file:", ["file:"]),
    ],
)
def test_a_disk_that_makes_no_sense(refused, disk, words):
    names(refused("-d", disk, code=None), *words)


def test_two_disks_of_one_name(refused):
    names(refused("-d", "d=ram,size=1M", "-d", "d=ram,size=2M", code=None), "d", "name")


def test_memory_that_there_is_not(refused):
    names(refused("-d", "d=ram,size=100T"), "RAM", "100T", "file:", "--overcommit")


def test_memory_that_there_is_not_in_all(refused):
    disks = [word for i in range(200) for word in ("-d", f"d{i}=ram,size=1T")]
    names(refused(*disks), "RAM", "--overcommit")


@pytest.fixture
def store(directory):
    path = directory / "store.img"
    path.write_bytes(b"precious" + bytes((1 << 20) - 8))
    yield path
    assert path.read_bytes() == b"precious" + bytes((1 << 20) - 8), "the file was changed"


def test_a_file_that_is_missing(refused, directory):
    path = directory / "missing"
    names(refused("-d", f"d=file:{path},size=1M"), "`d`", path, "truncate")
    assert not path.exists()


def test_a_file_that_is_a_directory(refused, directory):
    names(refused("-d", f"d=file:{directory},size=1M"), "`d`", directory, "directory", "regular file")


def test_a_file_that_cannot_be_written(refused, store):
    """A file that cannot be written is refused. Root may write to any file, so the test takes that capability
    away."""
    store.chmod(0o444)
    under = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    names(refused("-d", f"d=file:{store}", under=under), "`d`", store, "ro")


def test_a_file_that_is_smaller_than_its_disk(refused, store):
    names(refused("-d", f"d=file:{store},size=2M"), "`d`", store, "1M", "2M", "truncate")


def test_a_file_that_another_daemon_uses(serve, refused, store):
    serve("-d", f"d=file:{store}")
    names(refused("-d", f"d=file:{store}"), "`d`", store, "in use")


def test_a_file_that_two_disks_use(refused, store):
    names(refused("-d", f"a=file:{store}", "-d", f"b=file:{store}"), store, "in use")


def test_a_file_that_belongs_to_another_disk(serve, refused, store):
    serve("-d", f"a=file:{store}").stop()
    names(refused("-d", f"b=file:{store}"), "`b`", "`a`", store)
    serve("-d", f"a=file:{store}")


# Sockets.


def test_a_socket_in_use(daemon, directory):
    taken = directory / "second"
    done = run(
        BINARY,
        "serve",
        "-d",
        "d=ram,size=1M",
        "--nbd",
        f"unix:{daemon.nbd}",
        "--api",
        f"unix:{taken}.api",
        "--ready-file",
        taken,
        code=REFUSED,
    )
    names(done.stderr, daemon.nbd, "listens there", "dashpot stop", "--nbd")
    assert not taken.exists()
    assert daemon.json("status"), "the first one goes on"


def test_a_socket_that_a_dead_daemon_left_is_taken_over(serve, directory):
    dead = serve("-d", "d=ram,size=1M")
    dead.abandon()
    assert dead.nbd.exists()
    dead.ready.unlink()
    again = type(dead)(dead.directory, ["-d", "d=ram,size=1M"])
    assert again.json("status")
    again.stop()


# The ready file.


def test_a_ready_file_is_for_its_user_alone(serve):
    """Only its user may read a ready file, which contains the token if the API is on TCP."""
    daemon = serve("-d", "d=ram,size=1M", "--api", "tcp:127.0.0.1:0")
    assert "token=" in daemon.ready.read_text()
    assert daemon.ready.stat().st_mode & 0o777 == 0o600


def test_a_dead_daemons_ready_file_is_gone_before_anything_starts(serve, directory):
    dead = serve("-d", "d=ram,size=1M")
    dead.abandon()
    run(BINARY, "serve", "-d", "d=ram,size=100T", "--ready-file", dead.ready, code=REFUSED)
    assert not dead.ready.exists()


def test_a_living_daemons_ready_file_is_left_alone(daemon):
    done = run(
        BINARY,
        "serve",
        "-d",
        "d=ram,size=1M",
        "--nbd",
        "unix:-",
        "--api",
        "unix:-",
        "--ready-file",
        daemon.ready,
        code=REFUSED,
    )
    names(done.stderr, "--ready-file", daemon.ready, "running")
    assert daemon.ready.exists()


def test_a_ready_file_that_cannot_be(directory):
    done = run(
        BINARY,
        "serve",
        "-d",
        "d=ram,size=1M",
        "--nbd",
        f"unix:{directory}/nbd",
        "--api",
        f"unix:{directory}/api",
        "--ready-file",
        "/nowhere/ready",
        code=REFUSED,
    )
    names(done.stderr, "--ready-file", "/nowhere/ready")
    assert list(directory.iterdir()) == []


def test_an_announcement_that_cannot_be_made_stops_what_was_started(directory):
    with open("/dev/full", "w") as full:
        code = subprocess.call(
            [
                BINARY,
                "serve",
                "-d",
                "d=ram,size=1M",
                "--nbd",
                f"unix:{directory}/nbd",
                "--api",
                f"unix:{directory}/api",
                "--ready-file",
                f"{directory}/ready",
            ],
            stdout=full,
            stderr=subprocess.DEVNULL,
        )
    assert code == REFUSED
    assert list(directory.iterdir()) == []


# Files that are where sockets should be.


def test_a_file_in_the_place_of_a_socket_is_left_alone(directory):
    path = directory / "nbd.sock"
    path.write_text("precious")
    done = run(
        BINARY,
        "serve",
        "-d",
        "d=ram,size=1M",
        "--nbd",
        f"unix:{path}",
        "--api",
        f"unix:{directory}/api",
        code=REFUSED,
    )
    names(done.stderr, path, "another path")
    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    "address, words",
    [
        ("udp:1.2.3.4:5", ["udp", "unix:"]),
        ("tcp:127.0.0.1", ["tcp:127.0.0.1"]),
        ("tcp:127.0.0.1:99999", ["99999"]),
        ("unix:", ["unix:"]),
        ("unix:/" + "a" * 108, ["unix:", "107"]),
        ("unix:/nowhere/at/all", ["--nbd", "/nowhere/at/all", "create it"]),
        ("tcp:192.0.2.1:10809", ["--nbd", "192.0.2.1", "os error", "another address"]),
    ],
)
def test_an_address_that_makes_no_sense(address, words):
    done = run(BINARY, "serve", "-d", "d=ram,size=1M", "--nbd", address, "--api", "unix:-", code=None)
    assert done.returncode in (USAGE, REFUSED)
    names(done.stderr, *words)
    assert done.stderr.count("os error") <= 1, "the reason is said twice"


# Lab files.

LABS = {
    "a key with a typo": ('[disk.d]\nstor = "ram"\nsize = "1M"\n', ["stor", "store", "disk.d"]),
    "a table with a typo": ('[dsk.d]\nstore = "ram"\n', ["dsk", "disk"]),
    "a size without sense": ('[disk.d]\nstore = "ram"\nsize = "1Q"\n', ["disk.d", "size", "1Q"]),
    "a rule without a unit": (
        '[disk.d]\nstore = "ram"\nsize = "1M"\nrules = ["-D 10:1"]\n',
        ["disk.d", "10:1", "10ms:1"],
    ),
    "a pool without a volume": (
        '[disk.d]\nstore = "ram"\nsize = "1M"\n[pool.tank]\ndisks = ["d"]\n',
        ["pool.tank", "clients reach only volumes", "tank/NAME"],
    ),
    "no TOML": ("[disk.d\n", ["lab.toml:1:"]),
}


@pytest.mark.parametrize("case", LABS)
def test_a_lab_file_that_makes_no_sense(refused, directory, case):
    text, words = LABS[case]
    lab = directory / "lab.toml"
    lab.write_text(text)
    names(refused(lab, code=None), lab, *words)


def test_a_lab_file_that_is_missing(refused, directory):
    names(refused(directory / "no.toml"), directory / "no.toml")


# Rules.

RULES = {
    "no unit": (["-D", "10"], ["-D", "10", "did you mean 10ms?"]),
    "zinject's own grammar": (["-D", "10:1"], ["-D", "10:1", "did you mean 10ms:1?"]),
    "zero lanes": (["-D", "10ms:0"], ["-D", "10ms:0", "1 to 65534"]),
    "too many lanes": (["-D", "10ms:65535"], ["-D", "65535", "65534"]),
    "lanes without end": (["-D", "10ms:99999999999999999999"], ["-D", "99999999999999999999"]),
    "negative": (["-D", "-5ms"], ["-D", "-5ms", "negative"]),
    "too long": (["-D", "99999999999999m"], ["-D", "99999999999999m"]),
    "an unknown unit": (["-D", "1d"], ["-D", "1d", "ms"]),
    "no number": (["-D", "ms"], ["-D", "ms"]),
    "above 100 %": (["-D", "1ms", "-f", "110%"], ["-f", "110%", "100%"]),
    "probability without unit": (["-D", "1ms", "-f", "10"], ["-f", "10", "10%"]),
    "negative probability": (["-D", "1ms", "-f", "-1%"], ["-f", "-1%"]),
    "one in zero": (["-D", "1ms", "-f", "1:0"], ["-f", "1:0"]),
    "unknown operation": (["-D", "1ms", "-T", "raed"], ["-T", "raed", "read"]),
    "unknown error": (["-e", "EDOOM"], ["-e", "EDOOM", "EDOM?"]),
    "an error that NBD cannot carry": (["-e", "ETIMEDOUT"], ["ETIMEDOUT", "EIO"]),
    "first zero": (["-D", "1ms", "--first", "0"], ["--first", "0"]),
    "a cycle without a period": (["-D", "1ms", "--cycle", "5s"], ["--cycle", "5s/30s"]),
    "a cycle that never rests": (["-D", "1ms", "--cycle", "5s/5s"], ["--cycle 5s/30s"]),
    "a jitter without a cycle": (["-D", "1ms", "--jitter", "1s"], ["--cycle ON/PERIOD"]),
    "a jitter longer than the rest": (["-D", "1ms", "--cycle", "5s/6s", "--jitter", "2s"], ["jitter"]),
    "an empty range": (["-D", "1ms", "--range", "8K..4K"], ["--range", "8K..4K"]),
    "a distribution upside down": (["-D", "p50=30ms,p99=1ms"], ["-D", "p50=30ms,p99=1ms"]),
    "nothing": ([], ["-D", "-e", "--hang"]),
    "two effects": (["-D", "1ms", "--hang"], ["-D", "--hang"]),
    "an unknown mode": (["-D", "1ms", "--mode", "ad"], ["--mode", "ad", "add"]),
    "a group that is not": (["-D", "1ms", "--with", "77"], ["77", "dashpot list"]),
    "an option with a typo": (["-D", "1ms", "--frist", "1"], ["--frist", "--first"]),
}


@pytest.mark.parametrize("case", RULES)
def test_a_rule_that_makes_no_sense(daemon, case):
    words, message = RULES[case]
    done = daemon.cli("inject", "d", *words, code=None)
    # Only the daemon knows its groups of rules, and whether a disk is served over NBD.
    of_daemon = "--with" in words or "ETIMEDOUT" in words
    assert done.returncode == (REFUSED if of_daemon else USAGE), done.stderr
    names(done.stderr, *message)
    assert daemon.rules() == {}


@pytest.mark.parametrize(
    "words",
    [
        ["inject", "e", "-D", "1ms"],
        ["suspend", "e"],
        ["resume", "e"],
        ["list", "e"],
        ["clear", "e"],
    ],
)
def test_an_unknown_disk(daemon, words):
    message = daemon.cli(*words, code=REFUSED).stderr
    names(message, "'e'", "d")


@pytest.mark.parametrize("words", [["update", "9", "-D", "1ms"], ["clear", "9"], ["update", "nine", "-D", "1ms"]])
def test_an_unknown_rule(daemon, words):
    names(daemon.cli(*words, code=REFUSED).stderr, words[1])


def test_a_name_that_is_taken(daemon):
    daemon.cli("inject", "d", "-D", "1ms", "--name", "slow")
    names(daemon.cli("inject", "d", "-D", "2ms", "--name", "slow", code=REFUSED).stderr, "slow")
    assert len(daemon.rules()) == 1


def test_an_update_that_is_refused_changes_nothing(daemon):
    daemon.cli("inject", "d", "-D", "5ms:2")
    before = daemon.rules()[1]["rule"]
    daemon.cli("update", "1", "-D", "5:2", code=USAGE)
    assert daemon.rules()[1]["rule"] == before


@pytest.mark.parametrize("report", ["iolatency", "quantize", "heatmap"])
def test_times_that_a_daemon_does_not_remember_are_refused(daemon, report):
    names(daemon.cli(report, "--layer", "store", "--last", "5s", code=None).stderr, "--layer store", "dashpot record")


# A daemon that is not running.


@pytest.mark.parametrize("words", [["list"], ["status"], ["inject", "d", "-D", "1ms"], ["iolatency", "1", "1"]])
def test_a_daemon_that_is_not_running(directory, words):
    path = directory / "api.sock"
    done = run(BINARY, *words, code=REFUSED, env={"DASHPOT_API": f"unix:{path}"})
    names(done.stderr, path, "dashpot serve")


def test_usage_does_not_ask_for_an_api_that_the_environment_names(directory):
    api = {"DASHPOT_API": f"unix:{directory}/api.sock"}
    usage = run(BINARY, "inject", code=USAGE, env=api).stderr
    assert "Usage: dashpot inject" in usage and "--api" not in usage
    names(run(BINARY, "list", code=USAGE, env={"DASHPOT_API": "nowhere"}).stderr, "DASHPOT_API", "nowhere", "unix:PATH")


def test_man_pages_where_no_directory_can_be(directory):
    (directory / "file").write_text("")
    place = directory / "file" / "man1"
    names(run(BINARY, "man", place, code=REFUSED).stderr, place, "a directory that you may write to")


def test_a_load_of_nothing_says_so_once(directory):
    for uri in (f"nbd+unix:///d?socket={directory}/no", "nbd://127.0.0.1:1/d"):
        message = run(BINARY, "load", uri, code=REFUSED).stderr
        assert message.count("os error") == 1, message


def test_run_fails_as_itself_and_as_its_command(directory):
    """Checks the exit status of `run`: 125 to 127 are dashpot's own failures, as with env and timeout. All
    other statuses are the command's."""
    run(BINARY, "run", "-d", "d=ram,size=1M", "--", "sh", "-c", "exit 3", code=3)
    run(BINARY, "run", "-d", "d=ram,size=100T", "--", "true", code=125)
    run(BINARY, "run", "-d", "d=ram,size=1M", "--", directory, code=126)
    run(BINARY, "run", "-d", "d=ram,size=1M", "--", directory / "missing", code=127)


# Help.


def commands():
    listed = run(BINARY, "--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  ([\w-]+)", listed, re.MULTILINE)


def test_help_fits_a_screen_and_shows_an_example():
    listed = [[], *([command] for command in commands() if command != "help")]
    assert len(listed) > 10
    for words in listed:
        text = run(BINARY, *words, "--help", env={"COLUMNS": "100"}).stdout
        # The list of commands may grow with their number.
        most = 50 if words else len(commands()) + 25
        assert len(text.splitlines()) <= most, f"{words} has {len(text.splitlines())} lines"
        assert "Example" in text or "example" in text, f"{words} shows no example"
