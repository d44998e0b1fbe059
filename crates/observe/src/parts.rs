//! The values of breakdowns: a short key for each, and its name.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::class::{Class, Offsets};
use super::dimension::Dimension;
use super::finished::FinishedIo;
use super::interval::OTHER;
use super::kind::Kind;
use super::value::Value;

/// The value to which an I/O belongs in a breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    /// All I/Os, because there is no breakdown.
    All,
    /// A class of numbers.
    Class(Class),
    Named(Name),
    /// The value for I/Os that have no value of the dimension.
    Missing,
    /// A value that first appeared when there was no room for another value.
    Other,
}

/// An index into the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(usize);

/// Names in the order of their first I/Os.
#[derive(Debug, Default)]
pub(crate) struct Names {
    places: HashMap<Arc<str>, Name, RandomState>,
    names: Vec<Arc<str>>,
}

/// The names and the ranges of offsets to which the I/Os so far belong.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) names: Names,
    offsets: Offsets,
}

impl Parts {
    /// Lengthens the ranges of offsets until one contains the I/O's offset. Returns how many times their
    /// length has doubled. [`Part::merged`] then turns an earlier range into the longer range that contains
    /// it.
    pub(crate) fn reach(&mut self, by: Dimension, io: &FinishedIo) -> u32 {
        match by {
            Dimension::Offset => self.offsets.reach(io.offset_bytes),
            _ => 0,
        }
    }

    /// The part of an I/O. If the parts are ranges of offsets, call [`Parts::reach`] first, so that one
    /// of them contains the I/O's offset.
    pub(crate) fn of(&mut self, by: Dimension, io: &FinishedIo) -> Part {
        match by.of(io) {
            None => Part::Missing,
            Some(Value::Number(offset)) if by == Dimension::Offset => {
                Part::Class(self.offsets.class(offset))
            }
            Some(Value::Number(number)) => Part::Class(Class::of(number, by.unit())),
            Some(Value::Name(name)) => match self.names.known(name) {
                Some(name) => Part::Named(name),
                None if self.names.names.len() >= NAMES_MAX => Part::Other,
                None => Part::Named(self.names.intern(name)),
            },
        }
    }

    /// The name of a part for I/Os of this kind; `None` without a breakdown.
    pub(crate) fn name(&self, by: Dimension, kind: Kind, part: Part) -> Option<String> {
        Some(match part {
            Part::All => return None,
            Part::Class(class) if by == Dimension::Offset => self.offsets.name(class),
            Part::Class(class) => class.name(by.unit()),
            Part::Named(name) => self.names.of(name).to_string(),
            Part::Missing => by.missing(kind).to_owned(),
            Part::Other => OTHER.to_owned(),
        })
    }
}

impl Part {
    /// The part that contains this part after the ranges of offsets have doubled their length `doublings`
    /// times. A part that is no range stays what it is.
    pub(crate) fn merged(self, doublings: u32) -> Part {
        match self {
            Part::Class(class) => Part::Class(Offsets::merged(class, doublings)),
            part => part,
        }
    }
}

impl Names {
    pub(crate) fn known(&self, name: &str) -> Option<Name> {
        self.places.get(name).copied()
    }

    pub(crate) fn of(&self, name: Name) -> &Arc<str> {
        &self.names[name.0]
    }

    pub(crate) fn intern(&mut self, name: &str) -> Name {
        if let Some(known) = self.known(name) {
            return known;
        }
        let place = Name(self.names.len());
        let name: Arc<str> = name.into();
        self.places.insert(Arc::clone(&name), place);
        self.names.push(name);
        place
    }
}

/// At most this many names are kept, including the names of devices and types.
pub(crate) const NAMES_MAX: usize = 4_096;
