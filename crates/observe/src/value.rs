//! The values of dimensions and their units.

/// The unit of a dimension's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Names, which have no order.
    Name,
    Bytes,
    /// Nanoseconds.
    Time,
    /// A number of I/Os, or an id.
    Count,
}

/// The value of a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Name(&'a str),
    /// A number, in the unit of the dimension.
    Number(u64),
}
