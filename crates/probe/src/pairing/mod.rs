//! From events to finished I/Os (a stub: issue and completion of the same sector only).

use std::collections::HashMap;

use crate::device::{Device, Number};
use crate::io::Io;
use crate::record::{Record, What};
use crate::tracer::{InFlight, Start};

/// The I/Os in flight.
pub(crate) struct Pairing {
    issued: HashMap<(Number, u64), (Record, u32)>,
}

impl Pairing {
    pub(crate) fn new(_devices: &[Device], _start: Start) -> Pairing {
        Pairing {
            issued: HashMap::new(),
        }
    }

    pub(crate) fn take(&mut self, record: &Record, finished: &mut Vec<Io>) {
        let key = (record.device, record.sector);
        match record.what {
            What::Issue(bytes) => drop(self.issued.insert(key, (*record, bytes))),
            What::BioQueue(_) => drop(self.issued.insert(key, (*record, record.sectors * 512))),
            What::Complete(error) | What::BioComplete(error) => {
                if let Some((issue, bytes)) = self.issued.remove(&key) {
                    finished.push(Io {
                        device: record.device,
                        rwbs: issue.rwbs,
                        sector: record.sector,
                        bytes: u64::from(bytes),
                        queued_ns: None,
                        issued_ns: issue.at_ns,
                        completed_ns: record.at_ns,
                        error,
                        merged: 0,
                        requeued: 0,
                        submitter: None,
                    });
                }
            }
            _ => {}
        }
    }

    pub(crate) fn in_flight(&self) -> impl Iterator<Item = InFlight> + '_ {
        self.issued.values().map(|(issue, _)| InFlight {
            device: issue.device,
            rwbs: issue.rwbs,
            sector: issue.sector,
            since_ns: issue.at_ns,
            issued: true,
            submitter: None,
        })
    }

    pub(crate) fn lost(&mut self, at_ns: u64) {
        self.issued.retain(|_, (issue, _)| issue.at_ns >= at_ns);
    }
}
