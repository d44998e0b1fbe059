//! Events as text, one event per line, in the form `MICROSECONDS EVENT DEVICE LETTERS SECTOR + SECTORS MORE`.
//! MORE is the submitter as `comm-pid`, the error of a completion, or the number of bytes of an issue if it
//! differs from the size of the sectors. A split has `SECTOR / SECTOR`. A line that begins with `#` is a
//! comment.

use crate::device::{Device, Layer, Number};
use crate::io::{Comm, Io, Owner, Rwbs};
use crate::options::Start;
use crate::pairing::Pairing;
use crate::record::{Record, What};

pub(super) const LOOP0: Number = Number { major: 7, minor: 0 };

/// A whole disk.
pub(super) fn disk(number: Number, layer: Layer) -> Device {
    Device {
        name: number.to_string(),
        number,
        disk: number,
        sequence: None,
        home: 1,
        part: None,
        layer,
    }
}

/// Parses the events in a text.
pub(super) fn records(text: &str) -> Vec<Record> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(record)
        .collect()
}

/// A pairing of `LOOP0` that has taken the events of a text, and the I/Os that these events finished.
pub(super) fn paired(layer: Layer, start: Start, text: &str) -> (Pairing, Vec<Io>) {
    let mut pairing = Pairing::new(&[disk(LOOP0, layer)], start);
    let finished = take(&mut pairing, text);
    (pairing, finished)
}

/// Gives a pairing the events of a text. Returns the I/Os that finish.
pub(super) fn take(pairing: &mut Pairing, text: &str) -> Vec<Io> {
    let mut finished = Vec::new();
    for record in records(text) {
        finished.extend(pairing.take(&record, Owner::default()));
    }
    finished
}

/// The requests that a text finishes, one per line. The probe watches queueing.
pub(super) fn requests(text: &str) -> Vec<String> {
    lines(&paired(Layer::Request, Start::Queue, text).1)
}

/// The bios that a text finishes, one per line.
pub(super) fn bios(text: &str) -> Vec<String> {
    lines(&paired(Layer::Bio, Start::Issue, text).1)
}

pub(super) fn lines(finished: &[Io]) -> Vec<String> {
    finished.iter().map(line).collect()
}

/// An I/O as `LETTERS SECTOR + BYTES, queued, issued, completed`, with times in microseconds, and further
/// facts.
fn line(io: &Io) -> String {
    let queued = io
        .queued_ns
        .map_or("-".to_owned(), |ns| (ns / 1000).to_string());
    let (issued, completed) = (io.issued_ns / 1000, io.completed_ns / 1000);
    let mut line = format!(
        "{} {} + {}: {queued} {issued} {completed}",
        io.rwbs, io.sector, io.bytes
    );
    for (word, number) in [("merged", io.merged), ("requeued", io.requeued)] {
        if number > 0 {
            line += &format!(" {word} {number}");
        }
    }
    if io.error != 0 {
        line += &format!(" error {}", io.error);
    }
    line
}

fn record(line: &str) -> Record {
    let words: Vec<&str> = line.split(' ').collect();
    let [us, event, device, letters, sector, _, sectors, more @ ..] = &words[..] else {
        panic!("'{line}' is not an event");
    };
    let (major, minor) = device.split_once(',').expect("major,minor");
    let (comm, pid) = more
        .first()
        .and_then(|who| who.rsplit_once('-'))
        .unwrap_or_default();
    let sectors: u64 = sectors.parse().expect("sectors");
    Record {
        at_ns: us.parse::<u64>().expect("microseconds") * 1000,
        device: Number {
            major: major.parse().expect("major"),
            minor: minor.parse().expect("minor"),
        },
        sector: sector.parse().expect("sector"),
        sectors: if *event == "split" {
            0
        } else {
            u32::try_from(sectors).expect("few")
        },
        rwbs: Rwbs::new(letters.as_bytes()),
        pid: pid.parse().unwrap_or(0),
        what: what(
            event,
            sectors,
            Comm::new(comm.as_bytes()),
            more.first().copied(),
        ),
    }
}

fn what(event: &str, sectors: u64, comm: Comm, more: Option<&str>) -> What {
    let number = |otherwise| more.map_or(otherwise, |more| more.parse().expect("a number"));
    match event {
        "bio_queue" => What::BioQueue(comm),
        "split" => What::Split(sectors),
        "issue" => What::Issue(number(i64::try_from(sectors * 512).expect("few")) as u32),
        "requeue" => What::Requeue,
        "complete" => What::Complete(number(0) as i32),
        "bio_complete" => What::BioComplete(number(0) as i32),
        _ => panic!("'{event}' is not an event"),
    }
}
