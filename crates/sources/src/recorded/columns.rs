//! The columns of a recording that a question needs. Other columns are not decoded.

use dashpot_observe::{Dimension, Needs, Question};
use dashpot_recording::column;

/// The columns for the counts that every answer has, by device and type.
const ALWAYS: [usize; 6] = [
    column::LAYER,
    column::DEVICE,
    column::OP,
    column::RWBS,
    column::BYTES,
    column::OUTCOME,
];

/// The columns with the times of an I/O. An I/O's total time is the sum of its waits in these columns and of
/// `OTHER`, the rest.
const TIMES: &[usize] = &[
    column::AT,
    column::STORE,
    column::CLOCK,
    column::LATENCY,
    column::QUEUE,
    column::RECV,
    column::THROTTLE,
    column::SUSPEND,
    column::HOLD,
    column::LATENESS,
    column::REPLY,
    column::OTHER,
];

/// The columns that a question needs. `has_counted` is true if single I/Os of some seconds of the period must
/// be skipped.
pub(super) fn columns_of(question: &Question, has_counted: bool) -> Vec<usize> {
    let mut columns = ALWAYS.to_vec();
    if has_counted {
        columns.push(column::AT);
    }
    match question.needs() {
        Needs::Names | Needs::Latencies if !has_counted => {
            let times = question.needs() == Needs::Latencies;
            columns.extend(times.then_some(column::LATENCY));
            let own = question.dimensions();
            let own = own.filter(|one| *one != Dimension::Latency);
            columns.extend(own.flat_map(of));
        }
        _ => {
            let times = if question.counts_only { &[] } else { TIMES };
            columns.extend(times);
            columns.extend(question.has_averages().then_some(column::MERGED));
            columns.extend(question.dimensions().flat_map(of));
        }
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// The columns of a dimension, in addition to the columns that are always needed.
fn of(dimension: Dimension) -> Vec<usize> {
    let columns: &[usize] = match dimension {
        Dimension::Fua => &[column::FUA],
        Dimension::Client => &[column::CLIENT],
        // An older recording has no ids of threads. That shows that its processes are threads.
        Dimension::Process => &[column::PROCESS, column::PID, column::TID],
        Dimension::Pid => &[column::PID, column::TID],
        Dimension::Thread => &[column::THREAD, column::PID, column::TID],
        Dimension::Tid => &[column::PID, column::TID],
        // The names show which I/Os are the kernel's write-back.
        Dimension::Cgroup | Dimension::Container => {
            &[column::PROCESS, column::THREAD, column::CGROUP]
        }
        Dimension::Offset => &[column::SECTOR, column::IN_SECTOR],
        Dimension::Depth => &[column::DEPTH],
        Dimension::Latency | Dimension::Total => TIMES,
        // Only zios have these times. The column of throttle waits is read, too, because it shows which I/Os
        // are zios.
        Dimension::Throttle => &[column::THROTTLE],
        Dimension::Queue => &[column::THROTTLE, column::QUEUE],
        Dimension::Hold => &[column::THROTTLE, column::HOLD],
        Dimension::Late => &[column::THROTTLE, column::LATENESS],
        Dimension::Recv => &[column::THROTTLE, column::RECV],
        Dimension::Suspend => &[column::THROTTLE, column::SUSPEND],
        Dimension::Reply => &[column::THROTTLE, column::REPLY],
        Dimension::Fact(fact) => &[column::of(fact)],
        Dimension::Inode => &[column::INODE],
        Dimension::Store => &[column::THROTTLE, column::STORE],
        Dimension::Device
        | Dimension::Op
        | Dimension::Type
        | Dimension::Size
        | Dimension::Error => &[],
    };
    columns.to_vec()
}
