//! Distributions as quantile tables. The knots are computed with integers and the pinned `libm`.
//!
//! The logarithms and exponentials of std come from the platform, and differ in the last bit from machine to
//! machine. `libm` is written in Rust, and all other operations here are exact IEEE 754 arithmetic. The words
//! of a distribution therefore give the same table on every machine. The golden tests below check that.

use std::f64::consts::FRAC_1_SQRT_2;

use dashpot_engine::Duration;

/// A knot of a quantile function: a probability, as a fraction of 2^64, and the latency at that quantile.
pub(super) type Knot = (u64, Duration);

/// The 0.99 quantile of the standard normal distribution.
const Z_P99: f64 = 2.326_347_874_040_840_8;

/// How many knots of a log-normal distribution there are per unit of z, the standard normal quantile.
///
/// Between knots that are h apart in z, a straight line over the probability deviates from the curve by at
/// most σ(σ+|z|)h²/8 of the latency. With σ = 1 (p99 = 10 × p50), the deviation is 0.02 % at p90 and 0.06 %
/// at p99.999.
const KNOTS_PER_Z: i32 = 32;

/// The table ends at this z. Beyond it, the tail has a probability of 6·10^-16, which is too small for any
/// run to draw from it.
const Z_MAX: i32 = 8;

/// The number of knots between two given points, for each factor of e by which their latencies differ.
///
/// A straight line between these knots deviates from the exponential by at most (1/16)²/8 = 0.05 %.
const KNOTS_PER_E: f64 = 16.0;

/// A distribution in which all latencies from `low` to `high` are equally likely.
pub(super) fn uniform(low: Duration, high: Duration) -> Vec<Knot> {
    vec![(0, low), (u64::MAX, high)]
}

/// A distribution in which the logarithms of latencies are normally distributed. Knots are evenly spaced in
/// z, so that the inverse of the normal distribution is not needed.
pub(super) fn log_normal(p50: Duration, p99: Duration) -> Vec<Knot> {
    let median = p50.as_nanos() as f64;
    let sigma = libm::log(p99.as_nanos() as f64 / median) / Z_P99;
    let mut knots = Vec::new();
    for step in -Z_MAX * KNOTS_PER_Z..=Z_MAX * KNOTS_PER_Z {
        let z = f64::from(step) / f64::from(KNOTS_PER_Z);
        let latency = rounded(median * libm::exp(sigma * z));
        knots.push((normal_probability(z), Duration::from_nanos(latency)));
    }
    knots
}

/// Exponential curves through the given points. There must be at least one point, and the points must be in
/// order.
pub(super) fn log_linear(points: &[Knot]) -> Vec<Knot> {
    let mut knots: Vec<Knot> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        push_curve(&mut knots, pair[0], pair[1]);
    }
    knots
}

/// Adds the knots after `start`, up to and including `end`.
fn push_curve(knots: &mut Vec<Knot>, start: Knot, end: Knot) {
    let (low, high) = (start.1.as_nanos(), end.1.as_nanos());
    let slope = libm::log(high as f64 / low as f64);
    let pieces = libm::ceil(slope * KNOTS_PER_E).max(1.0) as u64;
    let mut last = start.0;
    let mut least = low;
    for piece in 1..pieces {
        let rise = u128::from(end.0 - start.0) * u128::from(piece) / u128::from(pieces);
        let q = start.0 + rise as u64;
        let exact = low as f64 * libm::exp(slope * piece as f64 / pieces as f64);
        // If two points are close together, there is no room for all the knots between them.
        if q > last {
            least = rounded(exact).clamp(least, high);
            knots.push((q, Duration::from_nanos(least)));
            last = q;
        }
    }
    knots.push(end);
}

/// The probability below z in a standard normal distribution, as a fraction of 2^64. The float holds only
/// the tail beyond |z|. A float close to 1 would lose digits of the tail.
fn normal_probability(z: f64) -> u64 {
    const TWO_63: f64 = (1_u64 << 63) as f64;
    let tail = (TWO_63 * libm::erfc(libm::fabs(z) * FRAC_1_SQRT_2)) as u64;
    if z < 0.0 { tail } else { tail.wrapping_neg() }
}

fn rounded(value: f64) -> u64 {
    (value + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use super::{Knot, log_linear, log_normal, uniform};
    use dashpot_engine::Duration;
    use dashpot_engine::inject::QuantileTable;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The FNV-1a hash of all knots.
    fn fingerprint(knots: &[Knot]) -> u64 {
        let words = knots
            .iter()
            .flat_map(|(q, latency)| [*q, latency.as_nanos()]);
        words
            .flat_map(u64::to_le_bytes)
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
    }

    /// The latency at a percentile, in nanoseconds.
    fn at(knots: &[Knot], percent: f64) -> f64 {
        let table = QuantileTable::new(knots.to_vec()).expect("knots in order");
        table
            .at((percent / 100.0 * 2_f64.powi(64)) as u64)
            .as_nanos() as f64
    }

    #[test]
    fn a_log_normal_table_is_the_same_on_every_machine() {
        let knots = log_normal(MS(10), MS(100));
        assert_eq!(knots.len(), 513);
        assert_eq!(knots[256], (1 << 63, MS(10)));
        assert_eq!(
            knots[256 + 96],
            (
                18_421_842_850_194_467_008,
                Duration::from_nanos(194_793_730)
            )
        );
        assert_eq!(fingerprint(&knots), 7_475_911_953_155_131_151);
    }

    #[test]
    fn a_log_linear_table_is_the_same_on_every_machine() {
        let knots = log_linear(&[(1 << 63, MS(1)), (u64::MAX / 100 * 99, MS(30))]);
        assert_eq!(knots.len(), 56);
        assert_eq!(fingerprint(&knots), 18_047_172_871_684_300_460);
    }

    #[test]
    fn a_log_normal_table_keeps_its_error_bound_into_the_tail() {
        let knots = log_normal(MS(10), MS(100));
        // Each percentage, with the standard normal quantile that published tables give for it.
        for (percent, z) in [
            (1.0, -2.326_347_874),
            (50.0, 0.0),
            (90.0, 1.281_551_566),
            (99.0, 2.326_347_874),
            (99.9, 3.090_232_306),
            (99.999, 4.264_890_794),
            (99.999_999, 5.612_001_243),
        ] {
            let exact = 1e7 * (10_f64.ln() / 2.326_347_874 * z).exp();
            let error = at(&knots, percent) / exact - 1.0;
            assert!(error.abs() < 0.001, "p{percent}: off by {error}");
        }
    }

    #[test]
    fn a_log_linear_table_keeps_its_error_bound_between_the_points() {
        let half = 1_u64 << 63;
        let knots = log_linear(&[(half, MS(1)), (half + (half >> 1), MS(1_000))]);
        assert_eq!(at(&knots, 10.0), 1e6);
        assert_eq!(at(&knots, 75.0), 1e9);
        assert_eq!(at(&knots, 99.0), 1e9);
        for percent in 50..75 {
            let exact = 1e6 * 1_000_f64.powf(f64::from(percent - 50) / 25.0);
            let error = at(&knots, f64::from(percent)) / exact - 1.0;
            assert!(error.abs() < 0.0006, "p{percent}: off by {error}");
        }
    }

    #[test]
    fn points_next_to_each_other_make_a_table() {
        for gap in 1..20 {
            let knots = log_linear(&[(7, MS(1)), (7 + gap, MS(100_000))]);
            assert!(QuantileTable::new(knots).is_ok(), "gap {gap}");
        }
        let years = Duration::from_nanos(u64::MAX - 1);
        let flat = log_linear(&[(0, Duration::from_nanos(u64::MAX - 3)), (u64::MAX, years)]);
        assert!(QuantileTable::new(flat).is_ok());
        assert!(QuantileTable::new(log_normal(MS(1), years)).is_ok());
        assert!(QuantileTable::new(uniform(MS(1), years)).is_ok());
    }
}
