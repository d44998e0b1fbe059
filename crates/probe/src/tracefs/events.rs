//! Which of the kernel's events say what a device's I/O did, and how their records are read.
//!
//! Of a request, `block_rq_issue` and `block_rq_complete` always say what happened;
//! `block_rq_insert` is not used, because a request that goes to its driver directly is never
//! inserted: when and by whom a request was made is what `block_getrq` says.

use super::format::{Field, Format, FormatError};
use crate::device::{Device, Layer, Number};
use crate::io::{Comm, Rwbs};
use crate::record::{Record, What};
use crate::tracer::{Options, Start};

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    BioQueue,
    BackMerge,
    FrontMerge,
    Split,
    GetRequest,
    RequestMerge,
    Issue,
    Requeue,
    Complete,
    BioComplete,
}

/// What always tells of a request.
const REQUEST: [Kind; 4] = [
    Kind::Issue,
    Kind::Requeue,
    Kind::Complete,
    Kind::RequestMerge,
];
/// What tells who made a request, and when.
const QUEUE: [Kind; 3] = [Kind::GetRequest, Kind::BackMerge, Kind::FrontMerge];
/// What tells of a bio.
const BIO: [Kind; 3] = [Kind::BioQueue, Kind::Split, Kind::BioComplete];

/// The events that what is watched takes, each with the disks whose events they are.
pub(crate) fn wanted(options: &Options) -> Vec<(Kind, Vec<Number>)> {
    let queue = options.start == Start::Queue || options.submitters;
    let queue = QUEUE.iter().filter(move |_| queue);
    let requests = REQUEST
        .iter()
        .chain(queue)
        .map(|&kind| (kind, Layer::Request));
    let bios = BIO.iter().map(|&kind| (kind, Layer::Bio));
    requests
        .chain(bios)
        .map(|(kind, layer)| (kind, disks(&options.devices, layer)))
        .filter(|(_, disks)| !disks.is_empty())
        .collect()
}

fn disks(devices: &[Device], layer: Layer) -> Vec<Number> {
    let on_layer = devices.iter().filter(|device| device.layer == layer);
    let mut disks: Vec<_> = on_layer.map(|device| device.disk).collect();
    disks.sort_unstable();
    disks.dedup();
    disks
}

/// The kernel's filter that lets only the events of these disks through; nothing if there are more
/// than it takes in one line, and then the events of every disk come.
pub(crate) fn filter(disks: &[Number]) -> Option<String> {
    let terms: Vec<_> = disks
        .iter()
        .map(|&disk| format!("dev == {}", encode(disk)))
        .collect();
    let filter = terms.join(" || ");
    (filter.len() < FILTER_MAX).then_some(filter)
}

/// The kernel takes less than a page.
const FILTER_MAX: usize = 4096;

const MINOR_BITS: u32 = 20;

/// A device's number as the kernel itself has it, which is not as `stat` gives it.
fn encode(number: Number) -> u32 {
    (number.major << MINOR_BITS) | number.minor
}

fn decode(dev: u64) -> Number {
    Number {
        major: (dev >> MINOR_BITS) as u32,
        minor: (dev & ((1 << MINOR_BITS) - 1)) as u32,
    }
}

impl Kind {
    /// The kernel's name for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::BioQueue => "block_bio_queue",
            Kind::BackMerge => "block_bio_backmerge",
            Kind::FrontMerge => "block_bio_frontmerge",
            Kind::Split => "block_split",
            Kind::GetRequest => "block_getrq",
            Kind::RequestMerge => "block_rq_merge",
            Kind::Issue => "block_rq_issue",
            Kind::Requeue => "block_rq_requeue",
            Kind::Complete => "block_rq_complete",
            Kind::BioComplete => "block_bio_complete",
        }
    }

    /// Whether every kernel has it. Kernels before 5.11 do not tell of merged requests.
    pub(crate) fn is_everywhere(self) -> bool {
        self != Kind::RequestMerge
    }

    /// The field that only this kind has.
    fn own_field(self, format: &Format) -> Result<Option<Field>, FormatError> {
        match self {
            Kind::BioQueue | Kind::GetRequest => format.field("comm").map(Some),
            Kind::Split => format.field("new_sector").map(Some),
            Kind::Issue => format.field("bytes").map(Some),
            // Until 4.12, a request's error was called otherwise.
            Kind::Complete => format.field("error").or(format.field("errors")).map(Some),
            Kind::BioComplete => format.field("error").map(Some),
            Kind::BackMerge | Kind::FrontMerge | Kind::RequestMerge | Kind::Requeue => Ok(None),
        }
    }
}

/// How one kind's records are read.
#[derive(Debug)]
pub(crate) struct Decoder {
    kind: Kind,
    pid: Field,
    dev: Field,
    sector: Field,
    /// A split tells none.
    sectors: Option<Field>,
    rwbs: Field,
    own: Option<Field>,
}

impl Decoder {
    /// Finds a kind's fields in its format.
    pub(crate) fn new(kind: Kind, format: &Format) -> Result<Decoder, FormatError> {
        let sectors = match kind {
            Kind::Split => None,
            _ => Some(format.field("nr_sector")?),
        };
        Ok(Decoder {
            kind,
            pid: format.field("common_pid")?,
            dev: format.field("dev")?,
            sector: format.field("sector")?,
            sectors,
            rwbs: format.field("rwbs")?,
            own: kind.own_field(format)?,
        })
    }

    /// Reads a record; nothing if it is too short.
    pub(crate) fn read(&self, at_ns: u64, record: &[u8]) -> Option<Record> {
        Some(Record {
            at_ns,
            device: decode(self.dev.number(record)?),
            sector: self.sector.number(record)?,
            sectors: match &self.sectors {
                Some(sectors) => sectors.number(record)? as u32,
                None => 0,
            },
            rwbs: Rwbs::new(self.rwbs.bytes(record)?),
            pid: self.pid.number(record)? as i32,
            what: self.what(record)?,
        })
    }

    fn what(&self, record: &[u8]) -> Option<What> {
        let number = || self.own.as_ref()?.number(record);
        let comm = || Some(Comm::new(self.own.as_ref()?.bytes(record)?));
        Some(match self.kind {
            Kind::BioQueue => What::BioQueue(comm()?),
            Kind::BackMerge => What::BackMerge,
            Kind::FrontMerge => What::FrontMerge,
            Kind::Split => What::Split(number()?),
            Kind::GetRequest => What::GetRequest(comm()?),
            Kind::RequestMerge => What::RequestMerge,
            Kind::Issue => What::Issue(number()? as u32),
            Kind::Requeue => What::Requeue,
            Kind::Complete => What::Complete(errno(number()?)),
            Kind::BioComplete => What::BioComplete(errno(number()?)),
        })
    }
}

/// The kernel's errors are negative.
fn errno(error: u64) -> i32 {
    (error as i32).saturating_abs()
}

#[cfg(test)]
mod tests;
