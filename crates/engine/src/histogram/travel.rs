//! Converts histograms to the form in which they are sent, and back.

use alloc::vec::Vec;

use super::Histogram;
use super::layout::{lower_bound, upper_bound};
use super::sparse::{BadBucket, Sparse};

impl Histogram {
    /// The histogram in the form in which it is sent.
    pub fn to_sparse(&self) -> Sparse {
        let mut buckets: Vec<_> = self.buckets().collect();
        buckets.shrink_to_fit();
        Sparse {
            buckets,
            min: self.min().unwrap_or_default(),
            max: self.max().unwrap_or_default(),
            nanos: self.nanos,
            micros: self.micros,
        }
    }

    /// The histogram from which [`Histogram::to_sparse`] made `sparse`.
    pub fn from_sparse(sparse: &Sparse) -> Result<Histogram, BadBucket> {
        let mut histogram = Histogram::default();
        for &(index, count) in &sparse.buckets {
            let bad = BadBucket(index);
            let total = histogram.count.checked_add(count).ok_or(bad)?;
            *histogram.counts.get_mut(index).ok_or(bad)? += count;
            histogram.count = total;
            if count > 0 {
                // The extremes of bad data could leave out an occupied bucket.
                histogram.min = histogram.min.min(upper_bound(index));
                histogram.max = histogram.max.max(lower_bound(index));
            }
        }
        if histogram.count > 0 {
            histogram.min = histogram.min.min(sparse.min);
            histogram.max = histogram.max.max(sparse.max);
            histogram.nanos = sparse.nanos;
            histogram.micros = sparse.micros;
        }
        Ok(histogram)
    }
}
