//! A finished I/O as JSON.

use dashpot_api::ZioWaits;
use dashpot_engine::Waits;
use dashpot_observe::{FinishedIo, IoWaits, Who};
use serde::Serialize;
use serde_json::{Value, json};

use super::columns::SECTOR;

/// A line of the output. `at_ns` is the time at which the I/O ended. This time is counted from 1970; in a
/// simulation, from the simulation's beginning. A zio's line has the other keys of the API's finished zios,
/// and `device` is the zio's disk.
#[derive(Serialize)]
struct Line {
    at_ns: u64,
    #[serde(flatten)]
    rest: Value,
}

/// The line of an I/O.
pub(super) fn line(io: &FinishedIo) -> impl Serialize {
    Line {
        at_ns: io.at_ns,
        rest: match io.waits {
            IoWaits::Zio(waits) | IoWaits::Call(waits) => zio(io, &waits),
            IoWaits::Kernel {
                queue_ns,
                device_ns,
            } => kernel(io, queue_ns, device_ns),
        },
    }
}

fn zio(io: &FinishedIo, waits: &Waits) -> Value {
    let mut line = json!({
        "device": *io.device,
        "client": io.who.as_ref().and_then(Who::client),
        "op": io.kind.word(),
        "fua": io.fua,
        "offset_bytes": io.offset_bytes,
        "length_bytes": io.length_bytes,
        "depth": io.depth,
        "error": io.error,
        "arrived_ns": io.begun_ns,
        "ended_ns": io.ended_ns,
        "total_ns": io.known_total_ns(),
        "waits": ZioWaits::of(waits, io.in_store_ns().is_some()),
    });
    if let (Value::Object(line), Value::Object(facts)) = (&mut line, json!(io.facts)) {
        line.extend(facts);
    }
    line
}

fn kernel(io: &FinishedIo, queue_ns: Option<u64>, device_ns: u64) -> Value {
    let thread = io.who.as_ref().and_then(Who::thread);
    json!({
        "device": *io.device,
        "rwbs": io.letters.as_deref(),
        "sector": io.offset_bytes / SECTOR,
        "bytes": io.length_bytes,
        "total_ns": io.total_ns(),
        "queue_ns": queue_ns,
        "device_ns": device_ns,
        "merged": io.merged,
        "requeued": io.requeued,
        "process": thread.and_then(|own| own.process.as_deref()),
        "pid": thread.and_then(|own| own.pid),
        "thread": thread.and_then(|own| own.thread.as_deref()),
        "tid": thread.and_then(|own| own.tid),
        "cgroup": thread.and_then(|own| own.cgroup.as_deref()),
        "inode": io.inode,
        "error": io.error,
    })
}
