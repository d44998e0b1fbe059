//! What is asked of those who watch, beyond what they always say.

/// What a watch is to tell apart, and to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// What each operation is broken down by.
    pub by: Option<By>,
    /// Whether latencies from arrival are looked at: of the kernel's disks, that takes more events.
    pub queued: bool,
    /// Whether latencies of the store alone are looked at, which a daemon knows from events.
    pub store: bool,
}

/// What operations of a device can be broken down by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Who sent them to dashpot.
    Client,
    /// The name of the process that asked the kernel for them.
    Process,
    /// The control group of that process.
    Cgroup,
    /// Their number of bytes, in powers of two.
    Size,
}

impl By {
    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            By::Client => "client",
            By::Process => "process",
            By::Cgroup => "cgroup",
            By::Size => "size",
        }
    }
}
