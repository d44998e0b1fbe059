//! A table: the size of a device, and its target.

use std::fmt;

use crate::format_size;

/// A table of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The size of the device, in sectors of 512 bytes; never 0.
    pub sectors: u64,
    /// The device's target, which handles the I/O.
    pub target: Target,
}

/// The target of a device, which handles its I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `delay`: passes the I/O on later.
    Delay(Delay),
    /// `error`: fails the I/O.
    Error,
}

/// The arguments of `delay`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The part for reads, and for writes and flushes that have no part of their own.
    pub read: Part,
    /// The part for writes, and for flushes that have no part of their own.
    pub write: Option<Part>,
    /// The part for flushes; `None` if `write` is `None`.
    pub flush: Option<Part>,
}

/// A part of `delay`: three arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The medium that holds the device's bytes.
    pub medium: Medium,
    /// The sector of the medium at which the device begins.
    pub start: u64,
    /// The delay in milliseconds.
    pub delay_ms: u32,
}

/// A medium, which holds the bytes of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A block device or a file, by its path.
    Path(String),
    /// A block device, by its numbers.
    Numbers(u32, u32),
    /// Memory of this many bytes.
    Ram(u64),
}

impl Table {
    /// The medium that holds the device's bytes. `error` has no bytes.
    pub fn medium(&self) -> Option<&Medium> {
        match &self.target {
            Target::Delay(delay) => Some(&delay.read.medium),
            Target::Error => None,
        }
    }

    /// The first sector of the device on its medium; 0 without a medium.
    pub fn start(&self) -> u64 {
        match &self.target {
            Target::Delay(delay) => delay.read.start,
            Target::Error => 0,
        }
    }

    /// The same table, but with another name for its medium.
    pub fn over(mut self, medium: &Medium) -> Table {
        if let Target::Delay(delay) = &mut self.target {
            for part in delay.parts_mut() {
                part.medium = medium.clone();
            }
        }
        self
    }

    /// The names and the words of the rules that carry out the table.
    pub fn rules(&self) -> Vec<(&'static str, String)> {
        match &self.target {
            Target::Delay(delay) => delay.rules(),
            Target::Error => vec![("dm-error", "-e EIO -T all".to_owned())],
        }
    }
}

impl Delay {
    /// The delays of reads, writes and flushes, in milliseconds.
    pub fn delays(&self) -> [u32; 3] {
        let write = self.write.as_ref().unwrap_or(&self.read);
        let flush = self.flush.as_ref().unwrap_or(write);
        [self.read.delay_ms, write.delay_ms, flush.delay_ms]
    }

    /// The parts, in the order of the line.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        let others = [&self.write, &self.flush].into_iter().flatten();
        std::iter::once(&self.read).chain(others)
    }

    fn parts_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        let others = [&mut self.write, &mut self.flush].into_iter().flatten();
        std::iter::once(&mut self.read).chain(others)
    }

    /// The rules of a delay. As in dm-delay, an I/O is first delayed and then goes to the device. A delay of
    /// 0 needs no rule.
    fn rules(&self) -> Vec<(&'static str, String)> {
        let delayed = CLASSES.iter().zip(self.delays());
        let rule = |(&(name, ops), delay): (&(&'static str, &str), u32)| {
            (delay > 0).then(|| (name, format!("-D {delay}ms -T {ops} --mode add")))
        };
        delayed.filter_map(rule).collect()
    }
}

/// For each of dm-delay's classes, the name of its rule and the operations that the rule delays.
const CLASSES: [(&str, &str); 3] = [
    ("dm-read", "read"),
    ("dm-write", "write,trim,zero"),
    ("dm-flush", "flush"),
];

/// Writes the line as `dmsetup table` does.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0 {} ", self.sectors)?;
        match &self.target {
            Target::Error => f.write_str("error"),
            Target::Delay(delay) => {
                f.write_str("delay")?;
                delay.parts().try_for_each(|part| {
                    let Part {
                        medium,
                        start,
                        delay_ms,
                    } = part;
                    write!(f, " {medium} {start} {delay_ms}")
                })
            }
        }
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Medium::Path(path) => f.write_str(path),
            Medium::Numbers(major, minor) => write!(f, "{major}:{minor}"),
            Medium::Ram(size) => write!(f, "ram:{}", format_size(*size)),
        }
    }
}
