//! Notified system calls, by which a thread and its later children let another process answer some of their
//! calls.
//!
//! This is the user notification of seccomp, seccomp_unotify(2), and needs no privilege. A thread that is
//! about to execute a program [installs](Listener::install) a filter, which holds for as long as the thread
//! and its descendants live. A call that the filter notifies waits in the kernel until an owner of the
//! [`Listener`] answers the call. The answer is an error, or it lets the call go on. Once the last owner of
//! the listener has ended, the calls that the filter notifies fail with ENOSYS.

mod abi;
mod facts;
mod filter;
mod listener;
mod lookup;
mod name;
mod reach;
#[cfg(test)]
mod tests;

pub use abi::{REQUESTS, SystemCall, When, requests};
pub use facts::{PathTarget, Status, link};
pub use filter::Notified;
pub use listener::{Answer, Call, CallId, Caller, Listener, NotInstalled, make_first_call};
pub use lookup::{content, memory};
pub use name::Name;
pub use reach::{descriptor_of, read_memory, why_out_of_reach, write_memory};
