//! Latency histograms in one layout.

/// Placeholder until the layout lands.
#[derive(Clone, Debug, Default)]
pub struct Histogram {}

impl Histogram {
    /// Records one value.
    pub fn record(&mut self, _ns: u64) {}
}
