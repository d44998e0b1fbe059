//! The form in which histograms are sent: the occupied buckets only.

use alloc::vec::Vec;
use core::fmt;

use super::Histogram;
use super::layout::BUCKETS;
use super::moments::Moments;

/// The content of a histogram, ready to be encoded. The indices of buckets mean nothing without the layout,
/// so send [`super::LAYOUT`], too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sparse {
    /// Occupied buckets by index, with their counts.
    pub buckets: Vec<(usize, u64)>,
    /// The smallest value in nanoseconds. Ignored if no bucket is occupied.
    pub min: u64,
    /// The largest value in nanoseconds. Ignored if no bucket is occupied.
    pub max: u64,
    /// Moments of the values in nanoseconds.
    pub nanos: Moments,
    /// Moments of the values truncated to microseconds.
    pub micros: Moments,
}

impl Sparse {
    /// Adds the values of another histogram. A histogram of another layout counts as empty.
    pub fn merge(&mut self, other: &Sparse) {
        if !other.buckets.is_empty() {
            let mut sum = self.histogram();
            sum.merge(&other.histogram());
            *self = sum.to_sparse();
        }
    }

    /// The values as a full histogram. A histogram of another layout counts as empty.
    pub fn histogram(&self) -> Histogram {
        Histogram::from_sparse(self).unwrap_or_default()
    }
}

/// The layout has no bucket with this index, or the bucket's count makes the total exceed 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBucket(pub usize);

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
