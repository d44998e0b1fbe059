//! The columns of a recording that a question needs: the others are not decoded.

use dashpot_observe::{Dimension, Question};
use dashpot_recording::column;

/// The columns for the counts that every answer has.
const ALWAYS: [usize; 8] = [
    column::AT,
    column::LAYER,
    column::DEVICE,
    column::OP,
    column::RWBS,
    column::BYTES,
    column::OUTCOME,
    // A zio is known by the work of its store.
    column::STORE,
];

/// The columns for times at a device, which are made of waits, or are what these leave.
const TIMES: &[usize] = &[
    column::CLOCK,
    column::LATENCY,
    column::QUEUE,
    column::THROTTLE,
    column::HOLD,
    column::LATENESS,
    column::OTHER,
];

/// The columns that a question needs.
pub(super) fn columns_of(question: &Question) -> Vec<usize> {
    let mut columns = ALWAYS.to_vec();
    if !question.counts_only {
        columns.extend(TIMES);
    }
    columns.extend(question.dimensions().flat_map(of).copied());
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// The columns of a dimension, beside those that are always needed.
fn of(dimension: Dimension) -> &'static [usize] {
    match dimension {
        Dimension::Fua => &[column::FUA],
        Dimension::Client => &[column::CLIENT],
        Dimension::Process | Dimension::Pid | Dimension::Cgroup => {
            &[column::PROCESS, column::PID, column::CGROUP]
        }
        Dimension::Offset => &[column::SECTOR, column::IN_SECTOR],
        Dimension::Depth => &[column::DEPTH],
        Dimension::Latency | Dimension::Total => TIMES,
        Dimension::Throttle => &[column::THROTTLE],
        Dimension::Queue => &[column::QUEUE],
        Dimension::Hold => &[column::HOLD],
        Dimension::Late => &[column::LATENESS],
        Dimension::Recv => &[column::RECV],
        Dimension::Suspend => &[column::SUSPEND],
        Dimension::Reply => &[column::REPLY],
        Dimension::Rule => &[column::RULE],
        Dimension::Lane => &[column::LANE],
        Dimension::Device
        | Dimension::Op
        | Dimension::Type
        | Dimension::Size
        | Dimension::Store
        | Dimension::Error => &[],
    }
}
