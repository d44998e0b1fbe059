//! The damage of a disk, in the API's form.

use dashpot_api::{ByteRange, DamagedIo, Faults};
use dashpot_engine::Instant;
use dashpot_export::DamageReport;
use dashpot_rules::damage_name;

/// The damage of a disk, with at most `list` places and as many I/Os.
pub(crate) fn faults(disk: String, report: &DamageReport, list: usize, at: Instant) -> Faults {
    let bytes = |range: &std::ops::Range<u64>| ByteRange {
        start_bytes: range.start,
        end_bytes: range.end,
    };
    let io = |io: &dashpot_export::DamagedIo| DamagedIo {
        age_ns: at.since(io.at).as_nanos(),
        rule: io.rule.0,
        damage: damage_name(io.damage).to_owned(),
        seed: io.seed,
        client: io.client.to_string(),
        op: io.op.name().to_owned(),
        offset_bytes: io.offset,
        length_bytes: io.length.into(),
        wrong: io.wrong.iter().map(bytes).collect(),
        other_bytes: io.other,
    };
    let left_out = report.ios.len().saturating_sub(list);
    Faults {
        disk,
        wrong_bytes: report
            .wrong
            .iter()
            .map(|range| range.end - range.start)
            .sum(),
        places: report.wrong.len() as u64,
        wrong: report.wrong.iter().take(list).map(bytes).collect(),
        full: report.is_full,
        inexact: report.is_inexact,
        read_by_pool_bytes: report.read_by_pool,
        damaged: report.total,
        faults: report.ios[left_out..].iter().map(io).collect(),
    }
}
