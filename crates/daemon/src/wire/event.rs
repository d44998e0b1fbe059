//! Converts finished zios to the API's type.

use dashpot_api::{FinishedZio, ZioWaits};
use dashpot_export as export;
use dashpot_rules::call_name;

/// A finished zio, with the names of its disk and its client.
pub(crate) fn finished_zio(zio: &export::FinishedZio, disk: &str, client: &str) -> FinishedZio {
    let waits = zio.waits();
    FinishedZio {
        disk: disk.to_owned(),
        client: client.to_owned(),
        op: zio.op.name().to_owned(),
        call: zio.call.and_then(call_name).map(str::to_owned),
        fua: zio.fua,
        offset_bytes: zio.offset,
        length_bytes: zio.length,
        depth: zio.depth,
        error: zio.outcome.err().map(|errno| errno.name().to_owned()),
        arrived_ns: zio.arrived.as_nanos(),
        ended_ns: zio.ended().as_nanos(),
        total_ns: zio.knows_store().then_some(waits.total().as_nanos()),
        waits: ZioWaits::of(&waits, zio.knows_store()),
        rule: zio.rule().map(|rule| rule.0),
        lane: zio.lane(),
        class: zio.class().map(|class| class.name().to_owned()),
        txg_syncing: zio.txg_syncing,
    }
}
