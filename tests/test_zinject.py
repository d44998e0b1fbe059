"""`dashpot zinject` takes zinject's options and prints what zinject prints."""

import errno
import re

import pytest
from timed import Client

MS = 1e-3


@pytest.fixture
def daemon(serve):
    return serve("-d", "c1t1d0=ram,size=64M", "-d", "c1t2d0=ram,size=64M")


def zinject(daemon, *words, code=0):
    return daemon.cli("zinject", *words, code=code)


def test_a_delay_is_added_and_in_milliseconds(daemon):
    text = zinject(daemon, "-d", "c1t1d0", "-D", "10:1", "tank").stdout
    assert re.fullmatch(
        r"Added handler 1 with the following properties:\n  pool: tank\n  vdev: [0-9a-f]+\niotype: all\n",
        text,
    ), text
    client = Client(daemon, "c1t1d0")
    requests = [client.read() for _ in range(4)]
    client.wait(*requests)
    start = min(request.sent for request in requests)
    answers = sorted(request.answered - start for request in requests)
    assert all(answer >= 10 * MS * (i + 1) for i, answer in enumerate(answers))


def test_delays_of_one_disk_share_their_lanes(daemon):
    """All handlers of a disk are one group, in which the lane that would finish an I/O soonest serves it. So a slower
    handler never delays an I/O that a faster one would finish sooner.
    """
    zinject(daemon, "-d", "c1t1d0", "-D", "10:1", "tank")
    zinject(daemon, "-d", "c1t1d0", "-D", "25:2", "tank")
    client = Client(daemon, "c1t1d0")
    requests = [client.read() for _ in range(10)]
    client.wait(*requests)
    start = min(request.sent for request in requests)
    answers = sorted(request.answered - start for request in requests)
    targets = [10, 20, 25, 25, 30, 40, 50, 50, 50, 60]
    assert all(answer >= target * MS for answer, target in zip(answers, targets, strict=True))


def test_all_is_read_and_write(daemon):
    zinject(daemon, "-d", "c1t1d0", "-D", "10:1", "tank")
    client = Client(daemon, "c1t1d0")
    client.wait(client.read(), client.write(), client.flush(), client.trim())
    assert daemon.rules()[1]["matched"] == 2


def test_the_list_of_today(daemon):
    zinject(daemon, "-d", "c1t1d0", "-D", "10:1", "tank")
    zinject(daemon, "-d", "c1t2d0", "-D", "25:2", "-f", "50", "tank")
    lines = zinject(daemon).stdout.splitlines()
    assert lines[0] == " ID  POOL             GUID              DELAY (ms)  LANES  FREQ       MATCH   INJECT"
    assert lines[1] == "---  ---------------  ----------------  ----------  -----  ---------  ------  ------"
    assert re.fullmatch(
        r"  1  tank             [0-9a-f]{1,16} *          10      1  100\.0000%       0       0", lines[2]
    )
    assert re.fullmatch(
        r"  2  tank             [0-9a-f]{1,16} *          25      2   50\.0000%       0       0", lines[3]
    )


def test_the_list_of_the_article(daemon):
    zinject(daemon, "-d", "c1t1d0", "-D", "10:1", "tank")
    lines = zinject(daemon, "--compat=2.3").stdout.splitlines()
    assert lines[0] == " ID  POOL             DELAY (ms)       LANES            GUID"
    assert lines[1] == "---  ---------------  ---------------  ---------------  ----------------"
    assert re.fullmatch(r"  1  tank             10               1                [0-9a-f]{1,16}", lines[2])


def test_nothing_registered(daemon):
    assert zinject(daemon).stdout.splitlines()[0] == "No handlers registered."


def test_quiet_prints_the_id_alone(daemon):
    assert zinject(daemon, "-q", "-d", "c1t1d0", "-D", "10:1", "tank").stdout == "1\n"


def test_cancelling(daemon):
    for _ in range(3):
        zinject(daemon, "-d", "c1t1d0", "-D", "10:1", "tank")
    assert zinject(daemon, "-c", "2").stdout == "removed handler 2\n"
    assert set(daemon.rules()) == {1, 3}
    assert zinject(daemon, "-c", "all").stdout == "removed all registered handlers\n"
    assert daemon.rules() == {}
    assert "failed to remove handler 9" in zinject(daemon, "-c", "9", code=1).stderr


def test_only_what_is_listed_is_cancelled(daemon):
    """zinject can cancel only rules that its list shows, and the list has no distributions and no hangs, because
    zinject has no words for them."""
    daemon.cli("inject", "c1t1d0", "-D", "10ms~5ms")
    daemon.cli("inject", "c1t2d0", "--hang", "--first", "1")
    zinject(daemon, "-d", "c1t1d0", "-D", "10:1", "tank")
    refused = zinject(daemon, "-c", "1", code=1).stderr
    assert "failed to remove handler 1: no such handler" in refused and "dashpot clear 1" in refused
    assert zinject(daemon, "-c", "all").stdout == "removed all registered handlers\n"
    assert set(daemon.rules()) == {1, 2}


def test_a_device_error(daemon):
    zinject(daemon, "-d", "c1t1d0", "-e", "io", "-T", "write", "tank")
    client = Client(daemon, "c1t1d0")
    assert client.wait(client.write()).error == errno.EIO
    assert client.wait(client.read()).error == 0


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["-d", "c1t1d0", "-D", "10", "tank"], 1, "invalid i/o delay value"),
        (["-d", "c1t1d0", "-D", "0:1", "tank"], 1, "invalid i/o delay value"),
        (["-d", "c1t1d0", "-D", "10:0", "tank"], 1, "10:0"),
        (["-d", "c1t1d0", "-D", "10:65535", "tank"], 1, "65535"),
        (["-d", "c1t1d0", "-D", "10:1", "-f", "0", "tank"], 1, "0.0001 to 100.0"),
        (["-d", "c1t1d0", "-D", "10:1", "-f", "101", "tank"], 1, "0.0001 to 100.0"),
        (["-d", "c1t1d0", "-D", "10:1", "-T", "flush", "tank"], 1, "read, write"),
        (["-d", "c9t9d9", "-D", "10:1", "tank"], 1, "c9t9d9"),
        (["-d", "c1t1d0", "-e", "nothing", "tank"], 1, "nothing"),
        (["-d", "c1t1d0", "-D", "10:1"], 2, "pool"),
        (["-c", "1", "-d", "c1t1d0"], 2, "-c"),
        (["-d", "c1t1d0", "tank"], 1, "nxio"),
        (["-t", "data", "/tank/file"], 1, "-t"),
        (["-p", "spa_sync", "tank"], 1, "-p"),
        (["-A", "fault", "-d", "c1t1d0", "tank"], 1, "-A"),
        (["-L", "uber", "-d", "c1t1d0", "tank"], 1, "-L"),
        (["-P", "import", "-s", "5", "tank"], 1, "-P"),
        (["-I", "-s", "5", "tank"], 1, "-I"),
    ],
)
def test_what_is_refused(daemon, words, code, said):
    done = zinject(daemon, *words, code=None)
    assert done.returncode in (1, 2), done.stderr
    assert said in done.stderr
    assert done.returncode == code
    assert daemon.rules() == {}


def test_an_error_is_not_drowned_in_usage(daemon):
    errors = zinject(daemon, "-d", "c1t1d0", "-D", "ten:1", "tank", code=1).stderr.splitlines()
    assert "invalid i/o delay value 'ten:1'" in errors[0]
    assert errors[-1] == "For more information, try 'dashpot zinject -h'." and len(errors) <= 9, errors
