"""The NBD protocol byte by byte, for messages that no client library would send.

The module was written from the protocol's specification (NetworkBlockDevice/nbd, doc/proto.md).
"""

import collections
import errno
import struct

NBDMAGIC = 0x4E42444D41474943
IHAVEOPT = 0x49484156454F5054
OPTION_REPLY = 0x3E889045565A9
REQUEST = 0x25609513
SIMPLE_REPLY = 0x67446698
STRUCTURED_REPLY = 0x668E33EF

FIXED_NEWSTYLE, NO_ZEROES = 1, 2

OPT_EXPORT_NAME, OPT_ABORT, OPT_LIST, OPT_STARTTLS = 1, 2, 3, 5
OPT_INFO, OPT_GO, OPT_STRUCTURED_REPLY, OPT_LIST_META_CONTEXT, OPT_SET_META_CONTEXT = 6, 7, 8, 9, 10

REP_ACK, REP_SERVER, REP_INFO, REP_META_CONTEXT = 1, 2, 3, 4
REP_ERR_UNSUP, REP_ERR_POLICY, REP_ERR_INVALID, REP_ERR_UNKNOWN, REP_ERR_TOO_BIG = (
    0x80000001,
    0x80000002,
    0x80000003,
    0x80000006,
    0x80000009,
)
INFO_EXPORT, INFO_DESCRIPTION, INFO_BLOCK_SIZE = 0, 2, 3

CMD_READ, CMD_WRITE, CMD_DISC, CMD_FLUSH, CMD_TRIM, CMD_CACHE, CMD_ZEROES, CMD_STATUS = range(8)
FLAG_FUA, FLAG_NO_HOLE, FLAG_DF, FLAG_REQ_ONE, FLAG_FAST_ZERO = 1, 2, 4, 8, 16

EPERM, EIO, EINVAL, ENOSPC = errno.EPERM, errno.EIO, errno.EINVAL, errno.ENOSPC

Reply = collections.namedtuple("Reply", "error cookie data")


class Closed(Exception):
    """The server has closed the connection."""


class Wire:
    """One connection. The caller decides how far the handshake goes."""

    def __init__(self, plain):
        self.plain = plain

    def send(self, data):
        self.plain.sendall(data)

    def take(self, length):
        """Reads exactly this many bytes."""
        data = bytearray()
        while len(data) < length:
            try:
                more = self.plain.recv(min(length - len(data), 1 << 20))
            except ConnectionResetError:
                raise Closed from None
            if not more:
                raise Closed
            data += more
        return bytes(data)

    def unpack(self, layout):
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def close(self):
        self.plain.close()

    def is_closed_by_server(self):
        """Waits for the next byte. Returns whether the stream ends instead."""
        try:
            self.take(1)
        except Closed:
            return True
        return False

    # The handshake.

    def greet(self, flags=FIXED_NEWSTYLE | NO_ZEROES):
        """Reads the server's greeting, and answers with the client's flags."""
        magic, option_magic, server_flags = self.unpack(">QQH")
        assert (magic, option_magic) == (NBDMAGIC, IHAVEOPT)
        self.send(struct.pack(">I", flags))
        return server_flags

    def send_option(self, option, data=b""):
        self.send(struct.pack(">QII", IHAVEOPT, option, len(data)) + data)

    def option_reply(self, option):
        """One reply to an option: its type and its data."""
        magic, about, kind, length = self.unpack(">QIII")
        assert (magic, about) == (OPTION_REPLY, option)
        return kind, self.take(length)

    def option(self, option, data=b""):
        """Sends an option. Returns its replies up to the acknowledgement or the error."""
        self.send_option(option, data)
        replies = [self.option_reply(option)]
        while replies[-1][0] != REP_ACK and replies[-1][0] < 0x80000000:
            replies.append(self.option_reply(option))
        return replies

    def go(self, name, structured=False):
        """Enters the transmission phase with as few messages as possible, and returns the export's size and
        flags."""
        self.greet()
        if structured:
            assert self.option(OPT_STRUCTURED_REPLY)[-1][0] == REP_ACK
        replies = self.option(OPT_GO, export(name))
        assert replies[-1][0] == REP_ACK, replies
        infos = [data for kind, data in replies if kind == REP_INFO]
        (info,) = [data for data in infos if struct.unpack(">H", data[:2])[0] == INFO_EXPORT]
        return struct.unpack(">QH", info[2:])

    # Transmission.

    def request(self, command, offset=0, length=0, flags=0, cookie=1, data=b""):
        self.send(request(command, offset, length, flags, cookie) + data)

    def simple_reply(self, length=0):
        """A simple reply, and the data of a successful read."""
        magic, error, cookie = self.unpack(">IIQ")
        assert magic == SIMPLE_REPLY
        return Reply(error, cookie, b"" if error else self.take(length))

    def call(self, command, offset=0, length=0, flags=0, data=b"", cookie=1):
        """Sends a request, takes its simple reply, and returns the error."""
        self.request(command, offset, length, flags, cookie, data)
        reply = self.simple_reply(length if command == CMD_READ else 0)
        assert reply.cookie == cookie
        return reply.error

    def in_step(self):
        """Sends a request, and returns whether client and server still agree about the position in the stream."""
        return self.call(CMD_READ, 0, 4096, cookie=0x5157E9) == 0


def export(name, infos=()):
    """The data of an option INFO or GO for an export."""
    name = name.encode()
    return struct.pack(">I", len(name)) + name + struct.pack(f">H{len(infos)}H", len(infos), *infos)


def request(command, offset=0, length=0, flags=0, cookie=1):
    return struct.pack(">IHHQQI", REQUEST, flags, command, cookie, offset, length)
