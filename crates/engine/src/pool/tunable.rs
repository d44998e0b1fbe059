//! The tunables of a pool: ZFS's names, defaults and bounds, in one table.

use core::fmt;

/// A tunable; its position is its place in [`Tunable::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tunable {
    /// The 100 % mark of the throttle.
    DirtyDataMax,
}

/// The values of a pool's tunables.
#[derive(Clone, Debug)]
pub struct Tunables {
    values: [u64; 1],
}

/// A value that a tunable cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunableError {
    /// Which.
    pub tunable: Tunable,
    /// What was asked for.
    pub value: u64,
}

impl fmt::Display for TunableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is out of bounds", self.value)
    }
}

impl Tunables {
    /// ZFS's defaults on a machine with so many bytes of memory.
    pub fn new(ram: u64) -> Tunables {
        Tunables { values: [ram / 10] }
    }

    /// The value in force.
    pub fn get(&self, tunable: Tunable) -> u64 {
        self.values[tunable as usize]
    }

    /// Sets one.
    pub fn set(&mut self, tunable: Tunable, value: u64) -> Result<(), TunableError> {
        self.values[tunable as usize] = value;
        Ok(())
    }
}
