//! Counts the I/Os that were in flight on other devices when slow I/Os were issued, because the I/Os that
//! slow others down are seldom slow themselves.
//!
//! The code samples a bounded number of the moments at which slow I/Os were issued, and of the moments at
//! which other I/Os were issued. For each moment it counts the I/Os that were in flight on other devices. It
//! can do so only in a second pass over all I/Os, after it has chosen the moments.

use std::collections::HashMap;
use std::sync::Arc;

use dashpot_engine::Random;
use foldhash::fast::RandomState;

use crate::dimension::Dimension;
use crate::finished::FinishedIo;
use crate::parts::{Part, Parts};

/// A random sample of moments. Every moment is equally likely to be kept.
#[derive(Debug)]
pub(super) struct Moments {
    random: Random,
    seen: u64,
    kept: Vec<Moment>,
    is_sorted: bool,
    /// For each value, the number of its I/Os that were in flight on other devices, summed over all kept
    /// moments.
    pub(super) beside: HashMap<(Dimension, Part), u64, RandomState>,
}

/// The moment at which an I/O was issued, and the I/O's device.
#[derive(Clone, Debug)]
struct Moment {
    at_ns: u64,
    device: Arc<str>,
}

impl Default for Moments {
    fn default() -> Moments {
        Moments {
            random: Random::new(1),
            seen: 0,
            kept: Vec::new(),
            is_sorted: true,
            beside: HashMap::default(),
        }
    }
}

impl Moments {
    /// Adds the moment at which an I/O was issued.
    pub(super) fn add(&mut self, io: &FinishedIo) {
        self.seen += 1;
        let place = if self.kept.len() < KEPT_MAX {
            self.kept.len()
        } else {
            self.random.below(self.seen) as usize
        };
        if place >= KEPT_MAX {
            return;
        }
        let moment = Moment {
            at_ns: io.begun_ns,
            device: Arc::clone(&io.device),
        };
        self.is_sorted = false;
        match self.kept.get_mut(place) {
            Some(kept) => *kept = moment,
            None => self.kept.push(moment),
        }
    }

    /// The number of kept moments.
    pub(super) fn count(&self) -> u64 {
        self.kept.len() as u64
    }

    /// Counts an I/O once for each kept moment at which it was in flight, except moments of its own device.
    pub(super) fn look(&mut self, io: &FinishedIo, by: &[Dimension], parts: &mut Parts) {
        if !self.is_sorted {
            self.kept.sort_unstable_by_key(|moment| moment.at_ns);
            self.is_sorted = true;
        }
        let from = self
            .kept
            .partition_point(|moment| moment.at_ns < io.begun_ns);
        let to = self
            .kept
            .partition_point(|moment| moment.at_ns < io.ended_ns);
        let own = self.kept.get(from..to).unwrap_or_default();
        let elsewhere = own.iter().filter(|moment| moment.device != io.device);
        let count = elsewhere.count() as u64;
        if count == 0 {
            return;
        }
        for by in by {
            let key = (*by, parts.of(*by, io));
            if self.beside.len() < KEYS_MAX || self.beside.contains_key(&key) {
                *self.beside.entry(key).or_default() += count;
            }
        }
    }
}

/// At most this many moments are kept, because more would hardly make the mean more precise.
const KEPT_MAX: usize = 2_048;
/// At most this many values of dimensions are counted. Any other value is ignored.
const KEYS_MAX: usize = 16_384;
