//! The bucket boundaries: the union of the boundaries that common latency tools use.
//!
//! A latency is an integer number of nanoseconds, so any set of boundaries can be given as a sorted list of
//! inclusive upper bounds. This list unites three kinds of boundaries:
//!
//! - `floor(10^9 × 2^(k/32))` from 1 ns to 2^11 s: the exponential histograms of OpenTelemetry
//!   (scale 5) and Prometheus (schema 5), in seconds and upper-inclusive;
//! - `2^k − 1`, `10^3 × 2^k − 1`, `10^6 × 2^k − 1`, `10^9 × 2^k − 1`: powers of two of 1 ns, 1 µs,
//!   1 ms and 1 s, lower-inclusive (`zpool iostat -w`, DTrace's quantize, bcc);
//! - `10^6 × 2^k`: powers of two of 1 ms, upper-inclusive, as in perf-tools' iolatency.
//!
//! The powers of two go on to 2^42 ns (73 minutes). The last bucket holds all larger values. Between 1 µs
//! and 2^11 s (34 minutes) no bucket is wider than 2.4 % of its values.
//!
//! The boundaries are frozen, because recorded histograms refer to them by [`LAYOUT`].

/// The name of these boundaries in stored and sent histograms.
pub const LAYOUT: &str = "v1";

/// Number of buckets.
pub const BUCKETS: usize = 1_306;

/// The highest value, in nanoseconds, of bucket `index`; `u64::MAX` for the last bucket and beyond.
pub fn upper_bound(index: usize) -> u64 {
    BOUNDS.get(index).copied().unwrap_or(u64::MAX)
}

/// The lowest value, in nanoseconds, of bucket `index`.
pub fn lower_bound(index: usize) -> u64 {
    match index {
        0 => 0,
        _ => upper_bound(index - 1).saturating_add(1),
    }
}

/// The bucket whose highest value is `ns`, if there is one.
pub(super) fn bucket_ending_at(ns: u64) -> Option<usize> {
    BOUNDS.binary_search(&ns).ok()
}

/// The index of the bucket for a value in nanoseconds. A table gives the first possible bucket for the
/// value's octave and leading eight bits. [`guesses`] has checked that the value is in that bucket or in one
/// of the next two.
#[inline]
pub fn bucket_of(ns: u64) -> usize {
    if ns >= END_NS {
        return BUCKETS - 1;
    }
    let guess = usize::from(GUESSES[cell_of(ns)]);
    guess + usize::from(ns > BOUNDS[guess]) + usize::from(ns > BOUNDS[guess + 1])
}

/// The lowest value of the last bucket.
const END_NS: u64 = 1 << 42;
/// The number of exponential boundaries per octave.
const SCALE: usize = 32;
/// The smallest `k` of the exponential boundaries `10^9 × 2^(k/32)`. This `k` gives a value below 1 ns.
const EXPONENTIAL_FIRST: i32 = -30 * SCALE as i32;
/// The largest `k` of the exponential boundaries. This `k` gives 2^11 s.
const EXPONENTIAL_LAST: i32 = 11 * SCALE as i32;
/// The number of binary digits after the point of a mantissa.
const FRACTION_BITS: i32 = 63;
/// Number of cells of the guess table: one cell for each value below 256, then 128 cells for each octave.
const CELLS: usize = cell_of(END_NS);

const MANTISSAS: [u64; SCALE] = mantissas();
static BOUNDS: [u64; BUCKETS] = bounds();
static GUESSES: [u16; CELLS] = guesses();

/// `2^(j/32)` for each `j`, in units of 2^-63, computed from square roots of two. Rounding loses a few units
/// but changes no boundary. A test checks this with 32nd powers of integers.
const fn mantissas() -> [u64; SCALE] {
    let mut mantissas = [1 << FRACTION_BITS; SCALE];
    let mut root: u128 = 2 << FRACTION_BITS;
    let mut bit = SCALE / 2;
    while bit > 0 {
        root = (root << FRACTION_BITS).isqrt();
        let mut j = 0;
        while j < SCALE {
            if j & bit != 0 {
                mantissas[j] = ((mantissas[j] as u128 * root) >> FRACTION_BITS) as u64;
            }
            j += 1;
        }
        bit /= 2;
    }
    mantissas
}

/// `floor(10^9 × 2^(k/32))`.
const fn exponential(k: i32) -> u64 {
    let mantissa = MANTISSAS[k.rem_euclid(SCALE as i32) as usize] as u128;
    let octave = k.div_euclid(SCALE as i32);
    ((1_000_000_000 * mantissa) >> (FRACTION_BITS - octave)) as u64
}

/// The smallest `unit × 2^k − 1` that is not below `ns`.
const fn below_power(unit: u64, ns: u64) -> u64 {
    unit * (ns / unit + 1).next_power_of_two() - 1
}

/// The smallest `unit × 2^k` that is not below `ns`.
const fn at_power(unit: u64, ns: u64) -> u64 {
    unit * ns.div_ceil(unit).next_power_of_two()
}

const fn bounds() -> [u64; BUCKETS] {
    let mut bounds = [u64::MAX; BUCKETS];
    let mut k = EXPONENTIAL_FIRST;
    let mut index = 0;
    let mut from = 0;
    while index < BUCKETS - 1 {
        while k <= EXPONENTIAL_LAST && exponential(k) < from {
            k += 1;
        }
        let candidates = [
            if k <= EXPONENTIAL_LAST {
                exponential(k)
            } else {
                u64::MAX
            },
            below_power(1, from),
            below_power(1_000, from),
            below_power(1_000_000, from),
            below_power(1_000_000_000, from),
            at_power(1_000_000, from),
        ];
        bounds[index] = least(&candidates);
        from = bounds[index] + 1;
        index += 1;
    }
    assert!(from == END_NS);
    bounds
}

const fn least(values: &[u64]) -> u64 {
    let mut least = u64::MAX;
    let mut i = 0;
    while i < values.len() {
        if values[i] < least {
            least = values[i];
        }
        i += 1;
    }
    least
}

/// The cell of a value: its leading eight bits and its octave as one number, without gaps between cells. Each
/// value below 256 has its own cell.
#[inline]
const fn cell_of(ns: u64) -> usize {
    let shift = 56 - (ns | 0x80).leading_zeros();
    ((shift as usize) << 7) + (ns >> shift) as usize
}

/// For each cell, the first bucket that can hold a value of the cell.
const fn guesses() -> [u16; CELLS] {
    let bounds = bounds();
    let mut guesses = [0; CELLS];
    let mut index = 0;
    let mut cell = 0;
    while cell < CELLS {
        while bounds[index] < cell_start(cell) {
            index += 1;
        }
        assert!(index + 2 >= BUCKETS || bounds[index + 2] >= cell_start(cell + 1) - 1);
        guesses[cell] = index as u16;
        cell += 1;
    }
    guesses
}

/// The smallest value of a cell.
const fn cell_start(cell: usize) -> u64 {
    if cell < 256 {
        return cell as u64;
    }
    let shift = (cell >> 7) - 1;
    ((cell & 0x7f | 0x80) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use alloc::vec::Vec;
    use core::cmp::Ordering;

    /// The product of two natural numbers, given as digits in base 2^32, the least significant digit first.
    fn product(a: &[u32], b: &[u32]) -> Vec<u32> {
        let mut digits = vec![0u32; a.len() + b.len()];
        for (i, &x) in a.iter().enumerate() {
            let mut carry = 0;
            for (j, &y) in b.iter().enumerate() {
                let sum = u64::from(x) * u64::from(y) + u64::from(digits[i + j]) + carry;
                digits[i + j] = sum as u32;
                carry = sum >> 32;
            }
            digits[i + b.len()] = carry as u32;
        }
        digits
    }

    /// `value^32 × 2^shift`, with a fixed number of digits, so that results can be compared.
    fn power_32(value: u64, shift: usize) -> Vec<u32> {
        let mut power = vec![value as u32, (value >> 32) as u32];
        for _ in 0..5 {
            power = product(&power, &power);
        }
        let mut factor = vec![0; shift / 32];
        factor.push(1 << (shift % 32));
        let mut digits = product(&power, &factor);
        digits.resize(128, 0);
        digits
    }

    fn compare(a: &[u32], b: &[u32]) -> Ordering {
        a.iter().rev().cmp(b.iter().rev())
    }

    /// Whether `bound ≤ 10^9 × 2^(k/32)`, found by comparing the 32nd powers.
    fn within(bound: u64, k: i32) -> bool {
        let left = power_32(bound, (-k).max(0) as usize);
        let right = power_32(1_000_000_000, k.max(0) as usize);
        compare(&left, &right) != Ordering::Greater
    }

    #[test]
    fn exponential_boundaries_are_exact() {
        for k in EXPONENTIAL_FIRST..=EXPONENTIAL_LAST {
            let bound = exponential(k);
            assert!(within(bound, k) && !within(bound + 1, k), "k = {k}");
        }
    }

    #[test]
    fn the_bounds_are_the_union_and_nothing_else() {
        let mut union = BTreeSet::from([u64::MAX]);
        union.extend((EXPONENTIAL_FIRST..=EXPONENTIAL_LAST).map(exponential));
        for k in 0..=42 {
            union.extend([1, 1_000, 1_000_000, 1_000_000_000].map(|unit: u64| (unit << k) - 1));
            union.insert(1_000_000 << k);
        }
        union.retain(|&bound| bound < END_NS || bound == u64::MAX);
        assert!(BOUNDS.iter().eq(union.iter()));
    }

    #[test]
    fn a_value_is_in_the_bucket_between_its_bounds() {
        let edges = BOUNDS
            .iter()
            .flat_map(|&b| [b.saturating_sub(1), b, b.saturating_add(1)]);
        let powers = (0..64).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1]);
        let cells = (0..CELLS).map(cell_start);
        for ns in edges.chain(powers).chain(cells).chain(0..100_000) {
            let index = bucket_of(ns);
            assert_eq!(
                index,
                BOUNDS.partition_point(|&bound| bound < ns),
                "{ns} ns"
            );
            assert!(
                lower_bound(index) <= ns && ns <= upper_bound(index),
                "{ns} ns"
            );
        }
    }

    #[test]
    fn no_bucket_is_wider_than_promised() {
        for index in bucket_of(1_000)..=bucket_of(2_048_000_000_000) {
            let (lower, upper) = (lower_bound(index), upper_bound(index));
            assert!((upper - lower) * 1_000 <= 24 * lower, "{lower}..={upper}");
        }
    }
}
