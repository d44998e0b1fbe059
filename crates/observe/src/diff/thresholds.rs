//! How large a difference must be to be told: one set of thresholds for all questions.

/// Fewer slow I/Os, or fewer I/Os of a value, are no evidence.
pub const IOS_LEAST: u64 = 30;
/// A smaller difference, in percentage points, does not count.
pub const POINTS_LEAST: f64 = 12.0;
/// The side in question is slower if its share of slow I/Os, or its mean slow time, is at least this many
/// times that of the other side.
pub const FACTOR_LEAST: f64 = 2.0;
/// Fewer I/Os in flight elsewhere than these, beyond the usual ones, do not count.
pub(super) const BESIDE_LEAST: f64 = 0.5;
/// The most values of a dimension, and the most that rose.
pub(super) const SHOWN_MAX: usize = 5;

/// A part of a whole; of nothing, none.
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    match whole > 0.0 {
        true => part / whole,
        false => 0.0,
    }
}
