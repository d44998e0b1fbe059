//! The table of I/Os: a row for each finished I/O, and for each I/O that was in flight when its file was
//! sealed.
//!
//! A row keeps every field of [`FinishedIo`]. Its `latency_ns` is the time at the device, which is also the
//! meaning of `latency` in statistics. The time from the beginning to the end is the sum of the waits and of
//! `other_ns`.

use dashpot_engine::{Duration, Waits};
use dashpot_observe::{Cell, Fact, Facts, FinishedIo, IoWaits, Kind, Layer, Thread, Who};

use crate::batch::{Batch, Row};
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

    use crate::table::{Column, columns};

    columns! { COLUMNS:
        /// When the I/O ended, in nanoseconds since 1970; for an I/O in flight, when the recording's file was sealed.
        AT = Column::number("at_ns").bounded();
        /// The time at the device; for an I/O in flight, its age.
        LATENCY = Column::number("latency_ns").bounded();
        /// The source's clock minus the time since 1970, at the I/O's end.
        CLOCK = Column::code("clock_ns");
        /// `volume`, `disk`, `fs`, or, for the kernel's disks beside a daemon's, `kernel`.
        LAYER = Column::word("layer");
        /// The name of the device.
        DEVICE = Column::word("device");
        /// The operation in dashpot's words.
        OP = Column::word("op");
        /// 1 for a write that asked for durability, else 0.
        FUA = Column::code("fua");
        /// The operation in the kernel's letters.
        RWBS = Column::word("rwbs").optional();
        /// The 512-byte sector in which the I/O begins. A column of sectors is a third smaller than a column
        /// of byte offsets, and most offsets are whole sectors.
        SECTOR = Column::number("sector");
        /// The I/O's first byte within its first sector.
        IN_SECTOR = Column::code("in_sector");
        /// The I/O's length.
        BYTES = Column::code("bytes");
        /// How many I/Os the device had in flight when this I/O arrived, including this I/O.
        DEPTH = Column::code("depth").optional();
        /// `ok`, the name of an error, or `in flight`.
        OUTCOME = Column::word("outcome");
        /// The client of dashpot that asked for the I/O.
        CLIENT = Column::word("client").optional();
        /// The name of the process that asked for the I/O; where `tid` is null, the name of the thread.
        PROCESS = Column::word("process").optional();
        /// The id of the process that asked for the I/O; where `tid` is null, the id of the thread.
        PID = Column::code("pid").optional();
        /// The cgroup of the thread that asked for the I/O.
        CGROUP = Column::word("cgroup").optional();
        /// The facts of zios, each in a column of its own.
        RULE = Column::of(Fact::Rule);
        LANE = Column::of(Fact::Lane);
        CLASS = Column::of(Fact::Class);
        TXG_SYNCING = Column::of(Fact::Txg);
        /// The inode of the file, if the I/O is a program's call that syncs a file.
        INODE = Column::code("inode").optional();
        /// The wait in a queue.
        QUEUE = Column::number("queue_ns").optional();
        /// A zio's wait for its payload. The next columns are the other waits of a zio.
        RECV = Column::number("recv_ns").optional();
        /// The wait for the write throttle of a pool.
        THROTTLE = Column::number("throttle_ns").optional();
        /// The wait for a suspended disk.
        SUSPEND = Column::number("suspend_ns").optional();
        /// The time that the store took.
        STORE = Column::number("store_ns").optional();
        /// How long rules held the I/O.
        HOLD = Column::number("hold_ns").optional();
        /// The lateness of the reply, which is dashpot's own error.
        LATENESS = Column::number("lateness_ns").optional();
        /// The wait until the transport accepted the reply.
        REPLY = Column::number("reply_ns").optional();
        /// The part of the time from the I/O's beginning to its end that is in none of the I/O's waits. The
        /// waits of an I/O of the kernel are `queue_ns` and `latency_ns`.
        OTHER = Column::code("other_ns");
        /// How many bios and requests were merged into this I/O.
        MERGED = Column::code("merged");
        /// How often the driver returned the I/O to the queue.
        REQUEUED = Column::code("requeued");
        /// The name of the thread that asked for the I/O.
        THREAD = Column::word("thread").optional().since(5);
        /// The id of the thread that asked for the I/O.
        TID = Column::code("tid").optional().since(5);
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

/// The columns whose values are names, beside those of facts.
pub(crate) const NAMES: [usize; 9] = [
    column::LAYER,
    column::DEVICE,
    column::OP,
    column::RWBS,
    column::OUTCOME,
    column::CLIENT,
    column::PROCESS,
    column::THREAD,
    column::CGROUP,
];

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
    let total_ns = io.ended_ns.wrapping_sub(io.begun_ns);
    // Only the age of an I/O in flight is known, because its waits are not over.
    let waits = if is_in_flight {
        IoWaits::Kernel {
            queue_ns: None,
            device_ns: total_ns,
        }
    } else {
        io.waits
    };
    let mut row = batch.row();
    row.int(io.at_ns as i64);
    row.int(waits.at_device_ns(io.layer) as i64);
    row.int(io.ended_ns.wrapping_sub(io.at_ns) as i64);
    row.text(io.layer.word());
    row.text(&io.device);
    row.text(io.kind.word());
    row.int(io.fua.into());
    row.maybe_text(io.letters.as_deref());
    row.int((io.offset_bytes / SECTOR_BYTES) as i64);
    row.int((io.offset_bytes % SECTOR_BYTES) as i64);
    row.int(io.length_bytes as i64);
    row.maybe_int(io.depth.map(i64::from));
    row.text(match (is_in_flight, &io.error) {
        (true, _) => IN_FLIGHT,
        (false, Some(error)) => error,
        (false, None) => OK,
    });
    push_who(&mut row, io);
    for fact in [Fact::Rule, Fact::Lane, Fact::Class, Fact::Txg] {
        push_fact(&mut row, fact, &io.facts);
    }
    row.maybe_int(io.inode.map(|inode| inode as i64));
    push_waits(&mut row, total_ns, &waits);
    row.int(io.merged.into());
    row.int(io.requeued.into());
    let thread = io.thread();
    row.maybe_text(thread.and_then(|own| own.thread.as_deref()));
    row.maybe_int(thread.and_then(|own| own.tid).map(i64::from));
}

fn push_fact(row: &mut Row<'_>, fact: Fact, facts: &Facts) {
    match fact.cell(facts) {
        Some(Cell::Int(int)) => row.maybe_int(Some(int)),
        Some(Cell::Word(word)) => row.maybe_text(Some(word)),
        None if fact.is_word() => row.maybe_text(None),
        None => row.maybe_int(None),
    }
}

fn push_who(row: &mut Row<'_>, io: &FinishedIo) {
    let thread = io.thread();
    row.maybe_text(io.client());
    row.maybe_text(thread.and_then(|own| own.process.as_deref()));
    row.maybe_int(thread.and_then(|own| own.pid).map(i64::from));
    row.maybe_text(thread.and_then(|own| own.cgroup.as_deref()));
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

/// The waits of a zio except the wait in the queue, in the order of their columns.
fn beside_queue(waits: &Waits) -> [Duration; 7] {
    [
        waits.recv,
        waits.throttle,
        waits.suspend,
        waits.store,
        waits.hold,
        waits.lateness,
        waits.reply,
    ]
}

/// The index at which the result of [`beside_queue`] has the time in the store.
const STORE_AT: usize = 3;

fn push_waits(row: &mut Row<'_>, total_ns: u64, waits: &IoWaits) {
    let (queue_ns, rest) = match waits {
        IoWaits::Zio(waits) => (
            Some(waits.queue.as_nanos()),
            beside_queue(waits).map(|wait| Some(wait.as_nanos())),
        ),
        IoWaits::Call(waits) => {
            let mut rest = beside_queue(waits).map(|wait| Some(wait.as_nanos()));
            rest[STORE_AT] = None;
            (Some(waits.queue.as_nanos()), rest)
        }
        IoWaits::Kernel { queue_ns, .. } => (*queue_ns, [None; 7]),
    };
    row.maybe_int(queue_ns.map(|ns| ns as i64));
    for wait in rest {
        row.maybe_int(wait.map(|ns| ns as i64));
    }
    row.int(total_ns.wrapping_sub(sum_ns(waits)) as i64);
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
