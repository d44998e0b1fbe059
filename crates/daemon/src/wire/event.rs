//! Converts finished zios to the records of finished I/Os.

use std::sync::Arc;

use dashpot_engine::Waits;
use dashpot_export::FinishedZio;
use dashpot_observe::{Facts, FinishedIo, IoWaits, Kind, Layer, Who};
use dashpot_rules::call_name;

/// A zio as an I/O, with the names of its device and its client.
pub(crate) fn io_of(zio: &FinishedZio, device: Arc<str>, client: Arc<str>) -> FinishedIo {
    let layer = if zio.is_of_volume() {
        Layer::Volume
    } else {
        Layer::Disk
    };
    let io = FinishedIo {
        waits: IoWaits::Zio(Waits::default()),
        who: Some(Who::Client(client)),
        ..FinishedIo::bare(layer, device, Kind::Other)
    };
    put(io, zio)
}

/// Puts another zio of the same device and client into the record.
pub(crate) fn put(io: FinishedIo, zio: &FinishedZio) -> FinishedIo {
    let waits = zio.waits();
    let ended_ns = (zio.arrived + waits.total()).as_nanos();
    FinishedIo {
        kind: Kind::Op(zio.op),
        fua: zio.fua,
        letters: zio.call.and_then(call_name).map(Into::into),
        offset_bytes: zio.offset,
        length_bytes: zio.length.into(),
        depth: Some(zio.depth),
        begun_ns: zio.arrived.as_nanos(),
        ended_ns,
        at_ns: ended_ns,
        waits: if zio.knows_store() {
            IoWaits::Zio(waits)
        } else {
            IoWaits::Call(waits)
        },
        facts: Facts {
            rule: zio.rule().map(|rule| rule.0),
            lane: zio.lane(),
            class: zio.class(),
            txg_syncing: zio.txg_syncing,
        },
        error: zio.outcome.err().map(|errno| errno.name().to_owned()),
        ..io
    }
}
