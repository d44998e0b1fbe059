//! How large a difference must be to be reported. The thresholds are the same for all questions.

/// Fewer slow I/Os than this, or fewer I/Os of a value, are not enough evidence.
pub const IOS_LEAST: u64 = 30;
/// A difference of fewer percentage points than this does not count.
pub const POINTS_LEAST: f64 = 12.0;
/// The side in question is slower if its share of slow I/Os, or its mean slow time, is at least this many
/// times the other side's.
pub const FACTOR_LEAST: f64 = 2.0;
/// The comparison reports a value only if, when slow I/Os were issued, on average at least this many more of the
/// value's I/Os were in flight on other devices than usual.
pub(super) const BESIDE_LEAST: f64 = 0.5;
/// At most this many values of a dimension, and at most this many values that rose, are shown.
pub(super) const SHOWN_MAX: usize = 5;

/// The ratio of a part to a whole; 0 if the whole is 0.
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
