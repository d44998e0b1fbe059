//! The kernel's events that show a device's I/O, and the decoders of their records.
//!
//! An event costs about 60 bytes and 70 ns, so the probe enables only the events that it needs.
//! `block_rq_issue` and `block_rq_complete` show the life of a request. The `block_bio_queue` events of a
//! request's bios show when, and by which process, the request was queued. (`pairing::requests` explains why
//! `block_getrq` and `block_rq_insert` cannot show this.) `block_rq_requeue` and `block_split` are rare.
//! `block_bio_complete` is also rare on a device with requests: the kernel raises it only for bios without a
//! request.

use super::format::{Field, Format, FormatError};
use crate::device::{Device, Layer, Number};
use crate::io::{Comm, Rwbs};
use crate::options::{Options, Start};
use crate::record::{Record, What};

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    BioQueue,
    Split,
    Issue,
    Requeue,
    Complete,
    BioComplete,
}

const KINDS: [Kind; 6] = [
    Kind::BioQueue,
    Kind::Split,
    Kind::Issue,
    Kind::Requeue,
    Kind::Complete,
    Kind::BioComplete,
];

/// The events that the options need, each with the disks for which the options need it.
pub(crate) fn wanted(options: &Options) -> Vec<(Kind, Vec<Number>)> {
    let disks = |kind: Kind| disks(&options.devices, |layer| kind.is_needed(layer, options));
    KINDS
        .iter()
        .map(|&kind| (kind, disks(kind)))
        .filter(|(_, disks)| !disks.is_empty())
        .collect()
}

/// The events that the options need, each with a filter for the kernel. If disks that appear later are watched,
/// the filters pass the events of unknown disks, too; `known` are all disks that exist now.
pub(crate) fn filtered(options: &Options, known: &[Device]) -> Vec<(Kind, Option<String>)> {
    if !options.later {
        let wanted = wanted(options).into_iter();
        return wanted
            .map(|(kind, disks)| (kind, filter("==", " || ", &disks)))
            .collect();
    }
    let others = |kind: Kind| disks(known, |layer| !kind.is_needed(layer, options));
    let kinds = KINDS.iter().filter(|kind| {
        let layers = [Layer::Request, Layer::Bio];
        layers.iter().any(|layer| kind.is_needed(*layer, options))
    });
    kinds
        .map(|&kind| (kind, filter("!=", " && ", &others(kind))))
        .collect()
}

fn disks(devices: &[Device], are_wanted: impl Fn(Layer) -> bool) -> Vec<Number> {
    let wanted = devices.iter().filter(|device| are_wanted(device.layer));
    let mut disks: Vec<_> = wanted.map(|device| device.disk).collect();
    disks.sort_unstable();
    disks.dedup();
    disks
}

/// A filter for the kernel that passes only the events of these disks, or all but them. `None` if the filter would
/// be empty, or too long for the kernel; then the kernel records the events of every disk.
fn filter(relation: &str, between: &str, disks: &[Number]) -> Option<String> {
    let terms: Vec<_> = disks
        .iter()
        .map(|&disk| format!("dev {relation} {}", encode(disk)))
        .collect();
    let filter = terms.join(between);
    (1..FILTER_MAX).contains(&filter.len()).then_some(filter)
}

/// The kernel's bound for the length of a filter: a page.
const FILTER_MAX: usize = 4096;

const MINOR_BITS: u32 = 20;

/// A device's number in the kernel's own encoding, which differs from the encoding in `stat`.
fn encode(number: Number) -> u32 {
    (number.major << MINOR_BITS) | number.minor
}

pub(crate) fn decode(dev: u64) -> Number {
    Number {
        major: (dev >> MINOR_BITS) as u32,
        minor: (dev & ((1 << MINOR_BITS) - 1)) as u32,
    }
}

impl Kind {
    /// Whether the options need this event for devices of this layer.
    fn is_needed(self, layer: Layer, options: &Options) -> bool {
        let queue = options.start == Start::Queue || options.submitters;
        match (self, layer) {
            (Kind::Issue | Kind::Requeue | Kind::Complete, layer) => layer == Layer::Request,
            (Kind::BioQueue | Kind::BioComplete, Layer::Bio) => true,
            (Kind::Split, Layer::Bio) => false,
            (Kind::BioQueue | Kind::Split | Kind::BioComplete, Layer::Request) => queue,
        }
    }

    /// The kernel's name for the event.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::BioQueue => "block_bio_queue",
            Kind::Split => "block_split",
            Kind::Issue => "block_rq_issue",
            Kind::Requeue => "block_rq_requeue",
            Kind::Complete => "block_rq_complete",
            Kind::BioComplete => "block_bio_complete",
        }
    }

    /// The one further field that the probe reads from this kind of event, if any.
    fn own_field(self, format: &Format) -> Result<Option<Field>, FormatError> {
        match self {
            Kind::BioQueue => format.field("comm").map(Some),
            Kind::Split => format.field("new_sector").map(Some),
            Kind::Issue => format.field("bytes").map(Some),
            // Until Linux 4.12, the field with the error of a request had another name.
            Kind::Complete => format.field("error").or(format.field("errors")).map(Some),
            Kind::BioComplete => format.field("error").map(Some),
            Kind::Requeue => Ok(None),
        }
    }
}

/// Decodes the records of one kind of event.
#[derive(Debug)]
pub(crate) struct Decoder {
    kind: Kind,
    pid: Field,
    dev: Field,
    sector: Field,
    /// The number of sectors, which the event of a split does not have.
    sectors: Option<Field>,
    rwbs: Field,
    own: Option<Field>,
}

impl Decoder {
    /// Finds the fields of one kind of event in its format.
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

    /// Reads a record; `None` if the record is too short.
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
            Kind::Split => What::Split(number()?),
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
