//! How large a difference must be to be reported: one set of thresholds for all questions.

/// The least number of slow I/Os, or of a value's I/Os, that counts as evidence.
pub const IOS_LEAST: u64 = 30;
/// The least difference that counts, in percentage points.
pub const POINTS_LEAST: f64 = 12.0;
/// The side in question is slower if its share of slow I/Os, or its mean slow time, is at least this many
/// times the other side's.
pub const FACTOR_LEAST: f64 = 2.0;
/// The least number of I/Os in flight on other devices, above the usual number, that counts.
pub(super) const BESIDE_LEAST: f64 = 0.5;
/// The most values of a dimension that are shown, and the most values that rose.
pub(super) const SHOWN_MAX: usize = 5;

/// The ratio of a part to a whole; 0 if the whole is 0.
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    match whole > 0.0 {
        true => part / whole,
        false => 0.0,
    }
}
