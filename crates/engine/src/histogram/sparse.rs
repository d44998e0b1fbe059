//! The form in which histograms travel: the occupied buckets only.

use alloc::vec::Vec;
use core::fmt;

use super::{BUCKETS, Histogram, Moments};

/// A histogram's content, for encoding. It is meant for one layout: send [`super::LAYOUT`] along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sparse {
    /// Occupied buckets by index, with their counts.
    pub buckets: Vec<(usize, u64)>,
    /// The smallest value in nanoseconds; without meaning if no bucket is occupied.
    pub min: u64,
    /// The largest value in nanoseconds; without meaning if no bucket is occupied.
    pub max: u64,
    /// Moments of the values in nanoseconds.
    pub nanos: Moments,
    /// Moments of the values truncated to microseconds.
    pub micros: Moments,
}

/// A bucket that the layout does not have, or whose count takes the total beyond 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBucket(pub usize);

impl Histogram {
    /// The content to send.
    pub fn to_sparse(&self) -> Sparse {
        Sparse {
            buckets: self.buckets().collect(),
            min: self.min().unwrap_or_default(),
            max: self.max().unwrap_or_default(),
            nanos: self.nanos,
            micros: self.micros,
        }
    }

    /// The histogram that [`Histogram::to_sparse`] was called on.
    pub fn from_sparse(sparse: &Sparse) -> Result<Histogram, BadBucket> {
        let mut histogram = Histogram::default();
        for &(index, count) in &sparse.buckets {
            let bad = BadBucket(index);
            let total = histogram.count.checked_add(count).ok_or(bad)?;
            *histogram.counts.get_mut(index).ok_or(bad)? += count;
            histogram.count = total;
        }
        if histogram.count > 0 {
            histogram.min = sparse.min;
            histogram.max = sparse.max;
            histogram.nanos = sparse.nanos;
            histogram.micros = sparse.micros;
        }
        Ok(histogram)
    }
}

impl fmt::Display for BadBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.0;
        write!(
            f,
            "histogram bucket {index} is not one of {BUCKETS}, or its count is too large"
        )
    }
}

impl core::error::Error for BadBucket {}
