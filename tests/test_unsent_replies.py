"""Replies of volumes that their client has not taken yet, while other clients change the same blocks. If a
pool's disk is in memory, the shard may leave a block there until it sends the reply, as for a lone disk."""

import contextlib

import pytest
from pools import POLICIES, VOLUME, lab

nbd = pytest.importorskip("nbd")

SIZE = 16 << 20
OLD, NEW, OTHER = 1, 2, 3


@contextlib.contextmanager
def connected(daemon, volume):
    client = nbd.NBD()
    client.connect_uri(daemon.uri(volume))
    yield client
    client.shutdown()


def fill(client, value, piece=1 << 20):
    for at in range(0, SIZE, piece):
        client.pwrite(bytes([value]) * piece, at)
    client.flush()


def ask(client, block):
    """Asks for all blocks, but takes no reply: libnbd takes replies only when it is polled."""
    buffers = [nbd.Buffer(block) for _ in range(0, SIZE, block)]
    return buffers, [client.aio_pread(buffer, at * block) for at, buffer in enumerate(buffers)]


def take(client, buffers, cookies):
    """Takes all replies. Returns the different bytes of each."""
    for cookie in cookies:
        while not client.aio_command_completed(cookie):
            client.poll(-1)
    return [set(bytes(buffer.to_bytearray())) for buffer in buffers]


@pytest.mark.parametrize("block", [8 << 10, 128 << 10, 256 << 10])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_reply_that_waits_is_never_half_old_and_half_new(serve, directory, policy, block):
    path, _ = lab(directory, policy, block=block, size=SIZE)
    daemon = serve(path)
    with connected(daemon, VOLUME) as reader, connected(daemon, VOLUME) as writer:
        fill(writer, OLD)
        asked = ask(reader, block)
        fill(writer, NEW)
        assert [one for one in take(reader, *asked) if one not in ({OLD}, {NEW})] == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_reply_that_waits_never_has_bytes_of_another_volume(serve, directory, policy):
    block = 8 << 10
    path, _ = lab(directory, policy, "dynamic", block=block, size=SIZE)
    with path.open("a") as text:
        text.write(f'[volume."tank/other"]\nsize = {SIZE}\nblock_size = {block}\nwrite = "{policy}"\n')
    daemon = serve(path)
    with connected(daemon, VOLUME) as reader, connected(daemon, VOLUME) as writer:
        with connected(daemon, "tank/other") as other:
            fill(writer, OLD)
            asked = ask(reader, block)
            writer.trim(SIZE, 0)
            writer.flush()
            fill(other, OTHER)
            assert [one for one in take(reader, *asked) if not one <= {OLD, 0}] == []


def test_a_reply_that_waits_has_no_bytes_of_a_write_that_failed(serve, directory):
    """Disk a fails the writes, so only disk b gets the new bytes. After that, reads go to disk a."""
    block = 8 << 10
    path, _ = lab(directory, "through", "mirror", block=block, size=SIZE)
    daemon = serve(path)
    with connected(daemon, VOLUME) as reader, connected(daemon, VOLUME) as writer:
        fill(writer, OLD)
        asked = ask(reader, block)
        daemon.cli("inject", "a", "-e", "EIO", "-T", "write")
        for at in range(0, SIZE, 1 << 20):
            with pytest.raises(nbd.Error):
                writer.pwrite(bytes([NEW]) * (1 << 20), at)
        assert [one for one in take(reader, *asked) if one != {OLD}] == []
