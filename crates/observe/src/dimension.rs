//! The dimensions of I/Os: the facts by which a question selects I/Os or breaks them down.

use dashpot_rules::{ParseError, nearest};
use serde::{Serialize, Serializer};

use super::container::container;
use super::facts::Fact;
use super::finished::{FinishedIo, IoWaits};
use super::kind::Kind;
use super::layer::Layer;
use super::value::{Unit, Value};

/// A fact about an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// The name of the I/O's device.
    Device,
    /// The operation, in dashpot's words.
    Op,
    /// The operation in the kernel's letters, or in dashpot's words if the source has no letters.
    Type,
    /// `yes` for a write that must be durable before its reply.
    Fua,
    /// The client that sent the I/O to dashpot.
    Client,
    /// The name of the process that asked the kernel for the I/O.
    Process,
    /// The id of the process that asked the kernel for the I/O.
    Pid,
    /// The name of the thread, in that process, that asked the kernel for the I/O.
    Thread,
    /// The id of the thread that asked the kernel for the I/O.
    Tid,
    /// The cgroup of the process that asked for the I/O.
    Cgroup,
    /// The container or the systemd unit of the cgroup, as far as the cgroup's path shows.
    Container,
    /// The I/O's length.
    Size,
    /// The I/O's first byte.
    Offset,
    /// How many I/Os the device had in flight when this I/O arrived, including this I/O.
    Depth,
    /// The I/O's time at the device.
    Latency,
    /// The time from the I/O's arrival until its end.
    Total,
    /// The wait for the I/O's payload.
    Recv,
    /// The wait for the pool's throttle.
    Throttle,
    /// The wait in a queue.
    Queue,
    /// The wait while the disk was suspended.
    Suspend,
    /// The time in the store.
    Store,
    /// The time for which rules held the I/O.
    Hold,
    /// The lateness of the reply, which is dashpot's own error.
    Late,
    /// The wait until the client took the reply.
    Reply,
    /// One of the facts that only zios have.
    Fact(Fact),
    /// The inode of the file, if the I/O is a program's call that syncs a file.
    Inode,
    /// The error with which the I/O ended.
    Error,
}

/// The kind of source of I/Os, which decides which facts are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    /// Disks or volumes of dashpot or of a simulation.
    Zios,
    /// Disks of the kernel.
    Kernel,
}

impl Knows {
    /// The facts that a source of one kind knows about the I/Os of a layer; `None` if the source does not
    /// know single I/Os of that layer.
    pub fn on(self, layer: Layer) -> Option<Knows> {
        let is_there = match self {
            Knows::Zios => matches!(layer, Layer::Disk | Layer::Volume),
            Knows::Kernel => layer == Layer::Disk,
        };
        is_there.then_some(self)
    }
}

/// The word, the unit and the meaning of a dimension.
struct Row {
    word: &'static str,
    unit: Unit,
    meaning: &'static str,
}

impl Dimension {
    /// All dimensions, in the order in which lists show them.
    pub const ALL: [Dimension; COUNT] = {
        let lists = [FIRST, &Dimension::WAITS, &FACTS, LAST];
        let mut all = [Dimension::Error; COUNT];
        let (mut at, mut list) = (0, 0);
        while list < lists.len() {
            let mut own = 0;
            while own < lists[list].len() {
                all[at] = lists[list][own];
                own += 1;
                at += 1;
            }
            list += 1;
        }
        all
    };

    /// The parts of a zio's latency, in the order in which the zio passes them.
    pub const WAITS: [Dimension; 8] = [
        Dimension::Recv,
        Dimension::Throttle,
        Dimension::Queue,
        Dimension::Suspend,
        Dimension::Store,
        Dimension::Hold,
        Dimension::Late,
        Dimension::Reply,
    ];

    /// The dimension with this word.
    ///
    /// # Errors
    ///
    /// No dimension has this word; the error names the nearest dimension, or all dimensions.
    pub fn parse(word: &str) -> Result<Dimension, ParseError> {
        let mut all = Dimension::ALL.into_iter();
        all.find(|dimension| dimension.word() == word)
            .ok_or_else(|| ParseError::new(format!("there is no '{word}': {}", remedy(word))))
    }

    fn row(self) -> Row {
        let (word, unit, meaning) = match self {
            Dimension::Device => ("device", Unit::Name, "the disk or volume"),
            Dimension::Op => (
                "op",
                Unit::Name,
                "read, write, flush, trim, zero, cache, other",
            ),
            Dimension::Type => ("type", Unit::Name, "the operation in the kernel's letters"),
            Dimension::Fua => (
                "fua",
                Unit::Name,
                "yes: a write to be durable before its reply",
            ),
            Dimension::Client => ("client", Unit::Name, "the client that sent it to dashpot"),
            Dimension::Process => ("process", Unit::Name, "the process that asked the kernel"),
            Dimension::Pid => ("pid", Unit::Count, "the id of that process"),
            Dimension::Thread => (
                "thread",
                Unit::Name,
                "the thread of that process that asked",
            ),
            Dimension::Tid => ("tid", Unit::Count, "the id of that thread"),
            Dimension::Cgroup => ("cgroup", Unit::Name, "the cgroup of that process"),
            Dimension::Container => (
                "container",
                Unit::Name,
                "the container or the unit of that cgroup",
            ),
            Dimension::Size => ("size", Unit::Bytes, "its length"),
            Dimension::Offset => ("offset", Unit::Bytes, "its first byte on the device"),
            Dimension::Depth => ("depth", Unit::Count, "I/Os at the device when it arrived"),
            Dimension::Latency => ("latency", Unit::Time, "the time at the device"),
            Dimension::Total => ("total", Unit::Time, "from arrival until it ended"),
            Dimension::Recv => ("recv", Unit::Time, "the wait for its payload"),
            Dimension::Throttle => ("throttle", Unit::Time, "the wait for its pool's throttle"),
            Dimension::Queue => ("queue", Unit::Time, "the wait in a queue"),
            Dimension::Suspend => ("suspend", Unit::Time, "the wait for a suspended disk"),
            Dimension::Store => ("store", Unit::Time, "the time in the store"),
            Dimension::Hold => ("hold", Unit::Time, "the time for which rules held it"),
            Dimension::Late => ("late", Unit::Time, "dashpot's own error"),
            Dimension::Reply => ("reply", Unit::Time, "until the client took the reply"),
            Dimension::Fact(fact) => {
                let row = fact.row();
                (row.word, row.unit, row.meaning)
            }
            Dimension::Inode => ("inode", Unit::Count, "the file that the call synced"),
            Dimension::Error => ("error", Unit::Name, "the error that it ended with, EIO"),
        };
        Row {
            word,
            unit,
            meaning,
        }
    }

    /// The dimension's word on the command line.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// The meaning of the dimension, in a few words.
    pub fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// The unit of the dimension's values.
    pub fn unit(self) -> Unit {
        self.row().unit
    }

    /// Whether the dimension is about the thread that asked for the I/O. The probe knows that thread only if
    /// it watches the submitters of I/Os.
    pub fn is_who(self) -> bool {
        let is_thread = matches!(self, Dimension::Thread | Dimension::Tid);
        is_thread || self.is_process() || self.is_cgroup()
    }

    /// Whether the dimension is about the process of the thread. The probe knows processes only if it follows
    /// all threads.
    pub fn is_process(self) -> bool {
        matches!(self, Dimension::Process | Dimension::Pid)
    }

    /// Whether the dimension needs the cgroup of the thread. The probe knows cgroups only if it follows all
    /// threads.
    pub fn is_cgroup(self) -> bool {
        matches!(self, Dimension::Cgroup | Dimension::Container)
    }

    /// Whether a source knows the dimension.
    pub fn is_known(self, knows: Knows) -> bool {
        match self {
            Dimension::Process
            | Dimension::Pid
            | Dimension::Thread
            | Dimension::Tid
            | Dimension::Cgroup
            | Dimension::Container
            | Dimension::Inode => knows == Knows::Kernel,
            Dimension::Client
            | Dimension::Depth
            | Dimension::Recv
            | Dimension::Throttle
            | Dimension::Suspend
            | Dimension::Store
            | Dimension::Hold
            | Dimension::Late
            | Dimension::Reply
            | Dimension::Fact(_) => knows == Knows::Zios,
            _ => true,
        }
    }

    /// The value that an I/O has in this dimension. `None` if the source does not know it, or if the I/O has
    /// none: most I/Os have no error, for example.
    pub fn of(self, io: &FinishedIo) -> Option<Value<'_>> {
        let who = io.who.as_ref();
        Some(match self {
            Dimension::Device => Value::Name(&io.device),
            Dimension::Op => Value::Name(io.kind.word()),
            Dimension::Type => {
                let letters = io.letters.as_deref();
                Value::Name(letters.unwrap_or(io.kind.word()))
            }
            Dimension::Fua => Value::Name(if io.fua { "yes" } else { "no" }),
            Dimension::Client => Value::Name(who?.client()?),
            Dimension::Process => Value::Name(who?.process(io.kind)?),
            Dimension::Pid => Value::Number(u64::try_from(who?.thread()?.pid?).ok()?),
            Dimension::Thread => Value::Name(who?.thread_name(io.kind)?),
            Dimension::Tid => Value::Number(u64::try_from(who?.thread()?.tid?).ok()?),
            Dimension::Cgroup => Value::Name(who?.cgroup(io.kind)?),
            Dimension::Container => Value::Name(container(who?.cgroup(io.kind)?)),
            Dimension::Size => Value::Number(io.length_bytes),
            Dimension::Offset => Value::Number(io.offset_bytes),
            Dimension::Depth => Value::Number(io.depth?.into()),
            Dimension::Latency => Value::Number(io.at_device_ns()),
            Dimension::Total => Value::Number(io.known_total_ns()?),
            Dimension::Fact(fact) => fact.value(&io.facts)?,
            Dimension::Inode => Value::Number(io.inode?),
            Dimension::Error => Value::Name(io.error.as_deref()?),
            _ => Value::Number(self.wait_ns(io)?),
        })
    }

    /// The number that an I/O has in this dimension; `None` if the dimension's values are names, or if
    /// [`Dimension::of`] returns `None`.
    pub fn number(self, io: &FinishedIo) -> Option<u64> {
        match self.of(io)? {
            Value::Number(number) => Some(number),
            Value::Name(_) => None,
        }
    }

    fn wait_ns(self, io: &FinishedIo) -> Option<u64> {
        let waits = match (&io.waits, self) {
            (IoWaits::Call(_), Dimension::Store) => return None,
            (IoWaits::Zio(waits) | IoWaits::Call(waits), _) => waits,
            (IoWaits::Kernel { queue_ns, .. }, Dimension::Queue) => return *queue_ns,
            (IoWaits::Kernel { .. }, _) => return None,
        };
        // Only a pool has a throttle, and only the disks of a pool have a queue.
        let wait = match self {
            Dimension::Recv => waits.recv,
            Dimension::Throttle if io.layer == Layer::Volume => waits.throttle,
            Dimension::Queue => waits.queue,
            Dimension::Suspend => waits.suspend,
            Dimension::Store => waits.store,
            Dimension::Hold => waits.hold,
            Dimension::Late => waits.lateness,
            Dimension::Reply => waits.reply,
            _ => return None,
        };
        Some(wait.as_nanos())
    }

    /// The name that a breakdown gives to I/Os without a value.
    pub(crate) fn missing(self, kind: Kind) -> &'static str {
        match self {
            Dimension::Fact(_) | Dimension::Error => "none",
            // The kernel may send a single flush for several processes.
            _ if self.is_who() && kind.is_any(&[dashpot_engine::Op::Flush]) => "flush",
            _ => "unknown",
        }
    }
}

/// The dimensions before the waits and the facts of zios.
const FIRST: &[Dimension] = &[
    Dimension::Device,
    Dimension::Op,
    Dimension::Type,
    Dimension::Fua,
    Dimension::Client,
    Dimension::Process,
    Dimension::Pid,
    Dimension::Thread,
    Dimension::Tid,
    Dimension::Cgroup,
    Dimension::Container,
    Dimension::Size,
    Dimension::Offset,
    Dimension::Depth,
    Dimension::Latency,
    Dimension::Total,
];
/// The facts of zios.
const FACTS: [Dimension; Fact::ALL.len()] = {
    let mut facts = [Dimension::Error; Fact::ALL.len()];
    let mut at = 0;
    while at < facts.len() {
        facts[at] = Dimension::Fact(Fact::ALL[at]);
        at += 1;
    }
    facts
};
/// The dimensions after the facts of zios.
const LAST: &[Dimension] = &[Dimension::Inode, Dimension::Error];
const COUNT: usize = FIRST.len() + Dimension::WAITS.len() + FACTS.len() + LAST.len();

impl Serialize for Dimension {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// A hint for an unknown word: the nearest dimension, or all dimensions.
fn remedy(word: &str) -> String {
    let words = Dimension::ALL.map(Dimension::word);
    match nearest(word, words) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("take one of {}", words.join(", ")),
    }
}
