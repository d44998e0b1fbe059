//! The form in which histograms travel: the occupied buckets only.

use alloc::vec::Vec;
use core::fmt;

use super::layout::BUCKETS;
use super::moments::Moments;

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
