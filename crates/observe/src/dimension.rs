//! The dimensions of I/Os: the facts by which a question selects I/Os or breaks them down, each in one row of one
//! table.

use dashpot_engine::Waits;
use dashpot_rules::{ParseError, nearest};
use serde::{Serialize, Serializer};

use super::container::container;
use super::facts::Fact;
use super::finished::FinishedIo;
use super::kind::Kind;
use super::layer::Layer;
use super::value::{Unit, Value};

/// Defines [`Dimension`] from its rows, in the order in which lists show them; `facts` stands for the rows of
/// [`Fact`]. A row has the word on the command line, the unit, the sources that know it, the meaning, and the value
/// that an I/O has.
macro_rules! dimensions {
    (
        $($(#[$about:meta])+ $name:ident = $row:expr, $io:ident => $value:expr;)+
        facts;
        $($(#[$later_about:meta])+ $later:ident = $later_row:expr, $later_io:ident => $later_value:expr;)+
    ) => {
        /// A fact about an I/O.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Dimension {
            $($(#[$about])+ $name,)+
            /// One of the facts that only zios have.
            Fact(Fact),
            $($(#[$later_about])+ $later,)+
        }

        const BEFORE_FACTS: &[Dimension] = &[$(Dimension::$name,)+];
        const AFTER_FACTS: &[Dimension] = &[$(Dimension::$later,)+];

        impl Dimension {
            const fn row(self) -> Row {
                match self {
                    $(Dimension::$name => $row,)+
                    Dimension::Fact(fact) => {
                        let row = fact.row();
                        Row::new(row.word, row.unit, ZIOS, row.meaning)
                    }
                    $(Dimension::$later => $later_row,)+
                }
            }

            /// The value that an I/O has in this dimension. `None` if the source does not know it, or if the
            /// I/O has none: most I/Os have no error, for example.
            pub fn of(self, io: &FinishedIo) -> Option<Value<'_>> {
                Some(match self {
                    $(Dimension::$name => { let $io = io; $value })+
                    Dimension::Fact(fact) => fact.value(&io.facts)?,
                    $(Dimension::$later => { let $later_io = io; $later_value })+
                })
            }
        }
    };
}

dimensions! {
    /// The name of the I/O's device.
    Device = Row::new("device", Unit::Name, ALL, "the disk or volume"), io => Value::Name(&io.device);
    /// The operation, in dashpot's words.
    Op = Row::new("op", Unit::Name, ALL, "read, write, flush, trim, zero, cache, other"),
        io => Value::Name(io.kind.word());
    /// The operation in the kernel's letters, or in dashpot's words if the source has no letters.
    Type = Row::new("type", Unit::Name, ALL, "the operation in the kernel's letters"),
        io => Value::Name(io.letters.as_deref().unwrap_or(io.kind.word()));
    /// `yes` for a write that must be durable before its reply.
    Fua = Row::new("fua", Unit::Name, ALL, "yes: a write to be durable before its reply"),
        io => Value::Name(if io.fua { "yes" } else { "no" });
    /// The client that sent the I/O to dashpot.
    Client = Row::new("client", Unit::Name, ZIOS, "the client that sent it to dashpot"),
        io => Value::Name(io.client()?);
    /// The name of the process that asked the kernel for the I/O.
    Process = Row::new("process", Unit::Name, KERNEL, "the process that asked the kernel"),
        io => Value::Name(io.who.as_ref()?.process(io.kind)?);
    /// The id of the process that asked the kernel for the I/O.
    Pid = Row::new("pid", Unit::Count, KERNEL, "the id of that process"),
        io => Value::Number(u64::try_from(io.thread()?.pid?).ok()?);
    /// The name of the thread, in that process, that asked the kernel for the I/O.
    Thread = Row::new("thread", Unit::Name, KERNEL, "the thread of that process that asked"),
        io => Value::Name(io.who.as_ref()?.thread_name(io.kind)?);
    /// The id of the thread that asked the kernel for the I/O.
    Tid = Row::new("tid", Unit::Count, KERNEL, "the id of that thread"),
        io => Value::Number(u64::try_from(io.thread()?.tid?).ok()?);
    /// The cgroup of the process that asked for the I/O.
    Cgroup = Row::new("cgroup", Unit::Name, KERNEL, "the cgroup of that process"),
        io => Value::Name(io.who.as_ref()?.cgroup(io.kind)?);
    /// The container or the systemd unit of the cgroup, as far as the cgroup's path shows.
    Container = Row::new("container", Unit::Name, KERNEL, "the container or the unit of that cgroup"),
        io => Value::Name(container(io.who.as_ref()?.cgroup(io.kind)?));
    /// The I/O's length.
    Size = Row::new("size", Unit::Bytes, ALL, "its length"), io => Value::Number(io.length_bytes);
    /// The I/O's first byte.
    Offset = Row::new("offset", Unit::Bytes, ALL, "its first byte on the device"),
        io => Value::Number(io.offset_bytes);
    /// How many I/Os the device had in flight when this I/O arrived, including this I/O.
    Depth = Row::new("depth", Unit::Count, ZIOS, "I/Os at the device when it arrived"),
        io => Value::Number(io.depth?.into());
    /// The I/O's time at the device.
    Latency = Row::new("latency", Unit::Time, ALL, "the time at the device"),
        io => Value::Number(io.at_device_ns());
    /// The time from the I/O's arrival until its end.
    Total = Row::new("total", Unit::Time, ALL, "from arrival until it ended"),
        io => Value::Number(io.known_total_ns()?);
    /// The wait for the I/O's payload.
    Recv = Row::new("recv", Unit::Time, ZIOS, "the wait for its payload"),
        io => Value::Number(waits(io)?.recv.as_nanos());
    /// The wait for the pool's throttle. Only a pool has one.
    Throttle = Row::new("throttle", Unit::Time, ZIOS, "the wait for its pool's throttle"),
        io => Value::Number(waits(io).filter(|_| io.layer == Layer::Volume)?.throttle.as_nanos());
    /// The wait in a queue.
    Queue = Row::new("queue", Unit::Time, ALL, "the wait in a queue"),
        io => Value::Number(io.waits.in_queue_ns()?);
    /// The wait while the disk was suspended.
    Suspend = Row::new("suspend", Unit::Time, ZIOS, "the wait for a suspended disk"),
        io => Value::Number(waits(io)?.suspend.as_nanos());
    /// The time in the store.
    Store = Row::new("store", Unit::Time, ZIOS, "the time in the store"),
        io => Value::Number(io.waits.in_store_ns()?);
    /// The time for which rules held the I/O.
    Hold = Row::new("hold", Unit::Time, ZIOS, "the time for which rules held it"),
        io => Value::Number(waits(io)?.hold.as_nanos());
    /// The lateness of the reply, which is dashpot's own error.
    Late = Row::new("late", Unit::Time, ZIOS, "dashpot's own error"),
        io => Value::Number(waits(io)?.lateness.as_nanos());
    /// The wait until the client took the reply.
    Reply = Row::new("reply", Unit::Time, ZIOS, "until the client took the reply"),
        io => Value::Number(waits(io)?.reply.as_nanos());
    facts;
    /// The inode of the file, if the I/O is a program's call that syncs a file.
    Inode = Row::new("inode", Unit::Count, KERNEL, "the file that the call synced"),
        io => Value::Number(io.inode?);
    /// The error with which the I/O ended.
    Error = Row::new("error", Unit::Name, ALL, "the error that it ended with, EIO"),
        io => Value::Name(io.error.as_deref()?);
}

/// The words for a dimension, and the sources that know it.
struct Row {
    word: &'static str,
    unit: Unit,
    known_by: &'static [Knows],
    meaning: &'static str,
}

const ALL: &[Knows] = &[Knows::Zios, Knows::Kernel];
const ZIOS: &[Knows] = &[Knows::Zios];
const KERNEL: &[Knows] = &[Knows::Kernel];

impl Row {
    const fn new(
        word: &'static str,
        unit: Unit,
        known_by: &'static [Knows],
        meaning: &'static str,
    ) -> Row {
        Row {
            word,
            unit,
            known_by,
            meaning,
        }
    }
}

/// The waits of a zio.
fn waits(io: &FinishedIo) -> Option<&Waits> {
    io.waits.zio()
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

impl Dimension {
    /// All dimensions, in the order in which lists show them.
    pub const ALL: [Dimension; BEFORE_FACTS.len() + Fact::ALL.len() + AFTER_FACTS.len()] = {
        let mut all = [Dimension::Error; BEFORE_FACTS.len() + Fact::ALL.len() + AFTER_FACTS.len()];
        let (facts, after) = (BEFORE_FACTS.len(), BEFORE_FACTS.len() + Fact::ALL.len());
        let mut at = 0;
        while at < all.len() {
            all[at] = if at < facts {
                BEFORE_FACTS[at]
            } else if at < after {
                Dimension::Fact(Fact::ALL[at - facts])
            } else {
                AFTER_FACTS[at - after]
            };
            at += 1;
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

    /// Whether a source knows the dimension.
    pub fn is_known(self, knows: Knows) -> bool {
        self.row().known_by.contains(&knows)
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

    /// The number that an I/O has in this dimension; `None` if the dimension's values are names, or if
    /// [`Dimension::of`] returns `None`.
    pub fn number(self, io: &FinishedIo) -> Option<u64> {
        match self.of(io)? {
            Value::Number(number) => Some(number),
            Value::Name(_) => None,
        }
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
