//! Whether the user has named the devices of a report.

/// Whether the user has named the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The user has named them.
    Yes,
    /// The user has named none, which means all.
    No,
}

impl Named {
    /// The names to ask for: the names from the user, or no names, which means all devices.
    pub fn only(self, names: &[String]) -> &[String] {
        match self {
            Named::Yes => names,
            Named::No => &[],
        }
    }
}
