//! Breakdowns by a dimension: the order of the groups in a report, and the value that an operation's I/O has
//! in the dimension.

use dashpot_observe::{Dimension, OpInterval, Order, Unit};

/// Whether every source distinguishes the values of this dimension even if the question does not ask for a
/// breakdown by it.
pub(crate) fn is_always_apart(by: Dimension) -> bool {
    matches!(by, Dimension::Device | Dimension::Type | Dimension::Op)
}

/// The order of this dimension's groups in a report that counts I/Os.
pub(crate) fn order_of(by: Dimension) -> Order {
    match by.unit() {
        Unit::Name => Order::ByCount,
        unit => Order::ByValue(unit),
    }
}

/// The value that the I/O of an operation on a device has in this dimension.
pub(crate) fn value_of<'a>(by: Dimension, device: &'a str, op: &'a OpInterval) -> &'a str {
    match by {
        Dimension::Device => device,
        Dimension::Type => op.rwbs.as_deref().unwrap_or(op.kind.word()),
        Dimension::Op => op.kind.word(),
        _ => op.by.as_deref().unwrap_or("unknown"),
    }
}
