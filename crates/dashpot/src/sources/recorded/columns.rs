//! The columns of a recording that a question needs: the others are not decoded.

use dashpot_observe::{Dimension, Question};
use dashpot_recording::column;

/// The columns for the sums that every answer has.
const ALWAYS: [usize; 15] = [
    column::AT,
    column::CLOCK,
    column::LATENCY,
    column::LAYER,
    column::DEVICE,
    column::OP,
    column::RWBS,
    column::BYTES,
    column::OUTCOME,
    // The time at the device is made of its waits, or is what they leave.
    column::QUEUE,
    column::THROTTLE,
    column::STORE,
    column::HOLD,
    column::LATENESS,
    column::OTHER,
];

/// The columns that a question needs.
pub(super) fn columns_of(question: &Question) -> Vec<usize> {
    let mut columns = ALWAYS.to_vec();
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
        Dimension::Recv => &[column::RECV],
        Dimension::Suspend => &[column::SUSPEND],
        Dimension::Reply => &[column::REPLY],
        Dimension::Rule => &[column::RULE],
        Dimension::Lane => &[column::LANE],
        Dimension::Device
        | Dimension::Op
        | Dimension::Type
        | Dimension::Size
        | Dimension::Latency
        | Dimension::Total
        | Dimension::Throttle
        | Dimension::Queue
        | Dimension::Store
        | Dimension::Hold
        | Dimension::Late
        | Dimension::Error => &[],
    }
}
