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

/// A bucket index that the layout does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownBucket(pub usize);

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
    pub fn from_sparse(sparse: &Sparse) -> Result<Histogram, UnknownBucket> {
        let mut histogram = Histogram::default();
        for &(index, count) in &sparse.buckets {
            let bucket = histogram
                .counts
                .get_mut(index)
                .ok_or(UnknownBucket(index))?;
            *bucket = bucket.saturating_add(count);
            histogram.count = histogram.count.saturating_add(count);
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

impl fmt::Display for UnknownBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "histogram bucket {} is not one of {BUCKETS}", self.0)
    }
}

impl core::error::Error for UnknownBucket {}
