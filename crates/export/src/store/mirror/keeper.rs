//! The thread that writes the labels of a pool's mirrors. It is a thread of its own because a shard must not
//! wait for a medium.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use dashpot_engine::pool::MirrorRecord;
use dashpot_engine::{Errno, Outcome};

use super::place::write_labels;
use super::{Label, LabelPlace, Start};

/// Writes the records of a pool's mirrors, on a thread of its own. Dropping the keeper waits until the last
/// record is written.
#[derive(Debug)]
pub(crate) struct Keeper {
    records: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

struct Request {
    records: Vec<MirrorRecord>,
    finish: Box<dyn FnOnce(Outcome) + Send>,
}

impl Keeper {
    /// A keeper for a pool's mirrors. `mirrors` has an entry for each member of the pool. `bitmap` is the
    /// pool's file for labels.
    pub(crate) fn new(mirrors: Vec<Option<Start>>, bitmap: Option<PathBuf>) -> io::Result<Keeper> {
        let labels = Labels::new(mirrors, bitmap)?;
        let (records, requests) = channel();
        let thread = Builder::new().name("dashpot-mirrors".to_owned());
        Ok(Keeper {
            records: Some(records),
            thread: Some(thread.spawn(move || labels.serve(&requests))?),
        })
    }

    /// Makes records durable, and passes the outcome to `finish`.
    pub(crate) fn keep(
        &self,
        records: Vec<MirrorRecord>,
        finish: impl FnOnce(Outcome) + Send + 'static,
    ) {
        let finish = Box::new(finish);
        if let Some(sender) = &self.records {
            // If the thread has panicked, it has already printed a message, and writes to new regions wait
            // for ever.
            let _ = sender.send(Request { records, finish });
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.records = None;
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, it has already printed a message.
            let _ = thread.join();
        }
    }
}

/// The labels of a pool's mirrors.
struct Labels {
    mirrors: Vec<Option<Start>>,
    names: Vec<String>,
    events: Vec<u64>,
    bitmap: Option<PathBuf>,
}

impl Labels {
    fn new(mirrors: Vec<Option<Start>>, bitmap: Option<PathBuf>) -> io::Result<Labels> {
        let (mut names, mut events) = (Vec::new(), Vec::new());
        for start in &mirrors {
            let known = start.as_ref().and_then(|start| start.mirror.clone());
            names.push(known.map_or_else(new_name, Ok)?);
            events.push(start.as_ref().map_or(0, |start| start.events));
        }
        Ok(Labels {
            mirrors,
            names,
            events,
            bitmap,
        })
    }

    fn serve(mut self, requests: &Receiver<Request>) {
        for request in requests {
            let outcome = self.write(&request.records);
            (request.finish)(outcome);
        }
    }

    /// Writes the labels of all sides that are in use. Succeeds if at least one side of each mirror gets its
    /// label, because the next start will see that the labels of the other sides are old.
    fn write(&mut self, records: &[MirrorRecord]) -> Outcome {
        let mut in_file = String::new();
        let mut outcome = Ok(());
        for record in records {
            let Some(start) = &self.mirrors[record.member] else {
                continue;
            };
            self.events[record.member] += 1;
            let label = Label {
                mirror: self.names[record.member].clone(),
                events: self.events[record.member],
                region_size: record.region_size,
                regions: record.regions.clone(),
            };
            outcome = outcome.and(write_sides(
                start,
                record.stale,
                &label.write(),
                &mut in_file,
            ));
        }
        match &self.bitmap {
            Some(bitmap) if !in_file.is_empty() => {
                outcome.and(write_labels(bitmap, &in_file).map_err(|_| Errno::Io))
            }
            _ => outcome,
        }
    }
}

/// Labels the sides of a mirror, except those that are not repaired yet. Adds to `in_file` the labels that
/// the pool's file for labels must have.
fn write_sides(start: &Start, stale: u64, label: &str, in_file: &mut String) -> Outcome {
    let (mut tried, mut written) = (false, false);
    for (at, side) in start.sides.iter().enumerate() {
        match &side.place {
            _ if stale >> at & 1 == 1 => {}
            LabelPlace::None => {}
            LabelPlace::Attribute(file) => {
                tried = true;
                written |= file.set_mirror_label(label).is_ok();
            }
            LabelPlace::Bitmap => {
                in_file.push_str(&format!("{} {label}\n", side.disk));
                written = true;
            }
        }
    }
    if tried && !written {
        return Err(Errno::Io);
    }
    Ok(())
}

/// A new name, which no other mirror has.
fn new_name() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/uuid")?
        .trim()
        .to_owned())
}
