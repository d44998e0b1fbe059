//! The table of I/Os: a row for each finished I/O, and for each I/O that was in flight when its file was
//! sealed.
//!
//! A row keeps every field of [`FinishedIo`]. Its `latency_ns` is the time at the device, which is also the
//! meaning of `latency` in statistics. The time from the beginning to the end is the sum of the waits and of
//! `other_ns`.

use dashpot_engine::{Duration, Waits};
use dashpot_observe::{Cell, Fact, Facts, FinishedIo, IoWaits, Kind, Layer, Thread, Who};

use crate::batch::{Batch, Row, Value};
use crate::block::Block;
use crate::table::Table;

/// The table of I/Os.
pub(crate) static IOS: Table = Table {
    name: "ios",
    columns: column::COLUMNS,
};

/// The columns of the table.
pub mod column {
    use dashpot_observe::Fact;

    use super::{Entry, SECTOR_BYTES, sum_ns};
    use crate::batch::Row;
    use crate::table::{Column, columns};

    columns! { COLUMNS, fill(of: &Entry<'_>):
        /// When the I/O ended, in nanoseconds since 1970; for an I/O in flight, when the recording's file was sealed.
        AT = Column::number("at_ns").bounded(), of.io.at_ns as i64;
        /// The time at the device; for an I/O in flight, its age.
        LATENCY = Column::number("latency_ns").bounded(), of.waits.at_device_ns(of.io.layer) as i64;
        /// The source's clock minus the time since 1970, at the I/O's end.
        CLOCK = Column::code("clock_ns"), of.io.ended_ns.wrapping_sub(of.io.at_ns) as i64;
        /// `volume`, `disk`, `fs`, or, for the kernel's disks beside a daemon's, `kernel`.
        LAYER = Column::word("layer"), of.io.layer.word();
        /// The name of the device.
        DEVICE = Column::word("device"), &*of.io.device;
        /// The operation in dashpot's words.
        OP = Column::word("op"), of.io.kind.word();
        /// 1 for a write that asked for durability, else 0.
        FUA = Column::code("fua"), i64::from(of.io.fua);
        /// The operation in the kernel's letters.
        RWBS = Column::word("rwbs").optional(), of.io.letters.as_deref();
        /// The 512-byte sector in which the I/O begins. A column of sectors is a third smaller than a column
        /// of byte offsets, and most offsets are whole sectors.
        SECTOR = Column::number("sector"), (of.io.offset_bytes / SECTOR_BYTES) as i64;
        /// The I/O's first byte within its first sector.
        IN_SECTOR = Column::code("in_sector"), (of.io.offset_bytes % SECTOR_BYTES) as i64;
        /// The I/O's length.
        BYTES = Column::code("bytes"), of.io.length_bytes as i64;
        /// How many I/Os the device had in flight when this I/O arrived, including this I/O.
        DEPTH = Column::code("depth").optional(), of.io.depth.map(i64::from);
        /// `ok`, the name of an error, or `in flight`.
        OUTCOME = Column::word("outcome"), of.outcome();
        /// The client of dashpot that asked for the I/O.
        CLIENT = Column::word("client").optional(), of.io.client();
        /// The name of the process that asked for the I/O; where `tid` is null, the name of the thread.
        PROCESS = Column::word("process").optional(), of.thread().process.as_deref();
        /// The id of the process that asked for the I/O; where `tid` is null, the id of the thread.
        PID = Column::code("pid").optional(), of.thread().pid.map(i64::from);
        /// The cgroup of the thread that asked for the I/O.
        CGROUP = Column::word("cgroup").optional(), of.thread().cgroup.as_deref();
        /// The facts of zios, each in a column of its own.
        RULE = Column::of(Fact::Rule), (Fact::Rule, &of.io.facts);
        LANE = Column::of(Fact::Lane), (Fact::Lane, &of.io.facts);
        CLASS = Column::of(Fact::Class), (Fact::Class, &of.io.facts);
        TXG_SYNCING = Column::of(Fact::Txg), (Fact::Txg, &of.io.facts);
        /// The inode of the file, if the I/O is a program's call that syncs a file.
        INODE = Column::code("inode").optional(), of.io.inode.map(|inode| inode as i64);
        /// The wait in a queue.
        QUEUE = Column::number("queue_ns").optional(), of.waits.in_queue_ns().map(|ns| ns as i64);
        /// A zio's wait for its payload. The next columns are the other waits of a zio.
        RECV = Column::number("recv_ns").optional(), of.wait(|waits| waits.recv);
        /// The wait for the write throttle of a pool.
        THROTTLE = Column::number("throttle_ns").optional(), of.wait(|waits| waits.throttle);
        /// The wait for a suspended disk.
        SUSPEND = Column::number("suspend_ns").optional(), of.wait(|waits| waits.suspend);
        /// The time that the store took.
        STORE = Column::number("store_ns").optional(), of.waits.in_store_ns().map(|ns| ns as i64);
        /// How long rules held the I/O.
        HOLD = Column::number("hold_ns").optional(), of.wait(|waits| waits.hold);
        /// The lateness of the reply, which is dashpot's own error.
        LATENESS = Column::number("lateness_ns").optional(), of.wait(|waits| waits.lateness);
        /// The wait until the transport accepted the reply.
        REPLY = Column::number("reply_ns").optional(), of.wait(|waits| waits.reply);
        /// The part of the time from the I/O's beginning to its end that is in none of the I/O's waits. The
        /// waits of an I/O of the kernel are `queue_ns` and `latency_ns`.
        OTHER = Column::code("other_ns"), of.total_ns().wrapping_sub(sum_ns(&of.waits)) as i64;
        /// How many bios and requests were merged into this I/O.
        MERGED = Column::code("merged"), i64::from(of.io.merged);
        /// How often the driver returned the I/O to the queue.
        REQUEUED = Column::code("requeued"), i64::from(of.io.requeued);
        /// The name of the thread that asked for the I/O.
        THREAD = Column::word("thread").optional().since(5), of.thread().thread.as_deref();
        /// The id of the thread that asked for the I/O.
        TID = Column::code("tid").optional().since(5), of.thread().tid.map(i64::from);
    }

    /// The column of a fact.
    pub const fn of(fact: Fact) -> usize {
        PLACES[fact as usize]
    }

    /// The places of the facts' columns. A fact without a column does not compile.
    const PLACES: [usize; Fact::ALL.len()] = {
        let mut places = [0; Fact::ALL.len()];
        let mut at = 0;
        while at < places.len() {
            let name = Fact::ALL[at].column().as_bytes();
            while !is_same(COLUMNS[places[at]].name.as_bytes(), name) {
                places[at] += 1;
            }
            at += 1;
        }
        places
    };

    const fn is_same(one: &[u8], other: &[u8]) -> bool {
        let mut at = 0;
        while at < one.len() && at < other.len() && one[at] == other[at] {
            at += 1;
        }
        at == one.len() && at == other.len()
    }
}

/// A recorded I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The I/O. If the I/O was still in flight, its end is the time at which its file was sealed, and its
    /// age counts as the time at its device.
    pub io: FinishedIo,
    /// Whether the I/O was still in flight when the recording's file was sealed.
    pub is_in_flight: bool,
}

impl Recorded {
    /// The I/O of a row, with the facts whose columns the block has.
    pub(crate) fn of_row(block: &Block, row: usize) -> Recorded {
        let name = |column| block.name(column, row).cloned();
        let outcome = block
            .text(column::OUTCOME, row)
            .filter(|outcome| *outcome != OK);
        let is_in_flight = outcome == Some(IN_FLIGHT);
        let layer = Layer::of_word(block.text(column::LAYER, row).unwrap_or_default());
        let kind = Kind::of_word(block.text(column::OP, row).unwrap_or_default());
        let device = name(column::DEVICE).unwrap_or_default();
        let mut io = FinishedIo {
            fua: block.int(column::FUA, row) == Some(1),
            letters: name(column::RWBS),
            who: who_of(block, row),
            error: outcome.filter(|_| !is_in_flight).map(str::to_owned),
            ..FinishedIo::bare(layer, device, kind)
        };
        for fact in Fact::ALL.iter().filter(|fact| fact.is_name()) {
            fact.set(&mut io.facts, cell(block, *fact, row));
        }
        set_numbers(block, row, &mut io);
        Recorded { io, is_in_flight }
    }
}

/// Copies the numbers of a row into `io`, which already has the row's names.
pub(crate) fn set_numbers(block: &Block, row: usize, io: &mut FinishedIo) {
    let int = |column| block.int(column, row);
    let bits = |column| int(column).unwrap_or_default() as u64;
    io.at_ns = bits(column::AT);
    io.ended_ns = io.at_ns.wrapping_add(bits(column::CLOCK));
    io.offset_bytes = bits(column::SECTOR)
        .wrapping_mul(SECTOR_BYTES)
        .wrapping_add(bits(column::IN_SECTOR));
    io.length_bytes = bits(column::BYTES);
    io.depth = int(column::DEPTH).map(|depth| depth as u32);
    io.waits = waits_of(block, row);
    let total_ns = sum_ns(&io.waits).wrapping_add(bits(column::OTHER));
    io.begun_ns = io.ended_ns.wrapping_sub(total_ns);
    for fact in Fact::ALL.iter().filter(|fact| !fact.is_name()) {
        fact.set(&mut io.facts, cell(block, *fact, row));
    }
    io.inode = int(column::INODE).map(|inode| inode as u64);
    io.merged = bits(column::MERGED) as u32;
    io.requeued = bits(column::REQUEUED) as u32;
    if let Some(Who::Thread(thread)) = &mut io.who {
        thread.pid = int(column::PID).map(|pid| pid as i32);
        thread.tid = int(column::TID).map(|tid| tid as i32);
    }
}

fn cell(block: &Block, fact: Fact, row: usize) -> Option<Cell<'_>> {
    let column = column::of(fact);
    if fact.is_word() {
        block.text(column, row).map(Cell::Word)
    } else {
        block.int(column, row).map(Cell::Int)
    }
}

/// Adds an I/O to a batch of [`IOS`].
pub(crate) fn push(batch: &mut Batch, io: &FinishedIo, is_in_flight: bool) {
    // Only the age of an I/O in flight is known, because its waits are not over.
    let waits = if is_in_flight {
        IoWaits::Kernel {
            queue_ns: None,
            device_ns: io.ended_ns.wrapping_sub(io.begun_ns),
        }
    } else {
        io.waits
    };
    let entry = Entry {
        io,
        waits,
        is_in_flight,
    };
    column::fill(&mut batch.row(), &entry);
}

/// An I/O that becomes a row.
pub(crate) struct Entry<'a> {
    io: &'a FinishedIo,
    /// The waits that are known.
    waits: IoWaits,
    is_in_flight: bool,
}

impl Entry<'_> {
    fn total_ns(&self) -> u64 {
        self.io.ended_ns.wrapping_sub(self.io.begun_ns)
    }

    fn outcome(&self) -> &str {
        match (self.is_in_flight, &self.io.error) {
            (true, _) => IN_FLIGHT,
            (false, Some(error)) => error,
            (false, None) => OK,
        }
    }

    fn thread(&self) -> &Thread {
        self.io.thread().unwrap_or(&NO_THREAD)
    }

    /// One of the waits that only zios have.
    fn wait(&self, of: impl Fn(&Waits) -> Duration) -> Option<i64> {
        self.waits.zio().map(|waits| of(waits).as_nanos() as i64)
    }
}

/// The thread of an I/O whose thread is not known.
static NO_THREAD: Thread = Thread {
    process: None,
    pid: None,
    thread: None,
    tid: None,
    cgroup: None,
};

impl Value for (Fact, &Facts) {
    fn put(self, row: &mut Row<'_>) {
        let (fact, facts) = self;
        match fact.cell(facts) {
            Some(Cell::Int(int)) => row.put(Some(int)),
            Some(Cell::Word(word)) => row.put(Some(word)),
            None if fact.is_word() => row.put(None::<&str>),
            None => row.put(None::<i64>),
        }
    }
}

fn who_of(block: &Block, row: usize) -> Option<Who> {
    let name = |column| block.name(column, row).cloned();
    if let Some(client) = name(column::CLIENT) {
        return Some(Who::Client(client));
    }
    let id = |column| block.int(column, row).map(|id| id as i32);
    let thread = Thread {
        process: name(column::PROCESS),
        pid: id(column::PID),
        thread: name(column::THREAD),
        tid: id(column::TID),
        cgroup: name(column::CGROUP),
    };
    (thread != Thread::default()).then_some(Who::Thread(thread))
}

/// The sum of all waits.
fn sum_ns(waits: &IoWaits) -> u64 {
    match waits {
        IoWaits::Zio(waits) | IoWaits::Call(waits) => waits.total().as_nanos(),
        IoWaits::Kernel {
            queue_ns,
            device_ns,
        } => queue_ns.unwrap_or_default().wrapping_add(*device_ns),
    }
}

/// The waits of a row. The row is a zio's if its wait for a throttle is not null. That column is quick to
/// read, because on most disks the wait is always 0. A zio without a time in the store is a program's call
/// that dashpot held but did not carry out.
fn waits_of(block: &Block, row: usize) -> IoWaits {
    let bits = |column| block.int(column, row).map(|ns| ns as u64);
    let queue_ns = bits(column::QUEUE);
    if bits(column::THROTTLE).is_some() {
        let ns = |column| Duration::from_nanos(bits(column).unwrap_or_default());
        let waits = Waits {
            recv: ns(column::RECV),
            throttle: ns(column::THROTTLE),
            queue: ns(column::QUEUE),
            suspend: ns(column::SUSPEND),
            store: ns(column::STORE),
            hold: ns(column::HOLD),
            lateness: ns(column::LATENESS),
            reply: ns(column::REPLY),
        };
        return match bits(column::STORE) {
            Some(_) => IoWaits::Zio(waits),
            None => IoWaits::Call(waits),
        };
    }
    IoWaits::Kernel {
        queue_ns,
        device_ns: bits(column::LATENCY).unwrap_or_default(),
    }
}

const SECTOR_BYTES: u64 = 512;
/// The outcome of an I/O that did not fail.
pub(crate) const OK: &str = "ok";
/// The outcome of an I/O that was in flight when the recording's file was sealed.
pub(crate) const IN_FLIGHT: &str = "in flight";
