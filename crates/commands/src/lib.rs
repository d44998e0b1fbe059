//! All commands except those that make block devices, print reports, simulate, or show the full screen.
//!
//! Each command is a function. Its error is the message for the user. If options exclude each other, the function
//! ends the program with a message and exit code 2.
//!
//! This crate does not depend on `dashpot_report`. Commands that need a table or a chart take it from `dashpot_text`.

mod caller;
mod check;
mod checks;
mod child;
mod clear;
mod crash;
mod devices;
mod doctor;
mod endpoint;
mod failed;
mod faults;
mod inflight;
mod init;
mod inject;
mod install;
mod instance;
mod list;
mod load;
pub mod page;
mod parent;
mod pipeline;
mod private;
mod program;
mod proof;
mod ready;
pub mod record;
mod renew;
mod reset;
mod resume;
mod run;
mod scenario;
mod scraper;
mod serve;
mod service;
mod signals;
mod status;
mod stop;
mod supervisor;
mod suspend;
mod token;
mod tunables;
mod update;
mod variables;
mod zinject;

pub use check::check;
pub use child::{FAILED, become_command};
pub use clear::clear;
pub use crash::crash;
pub use doctor::doctor;
pub use faults::faults;
pub use inflight::inflight;
pub use init::become_init;
pub use inject::inject;
pub use install::{install, version};
pub use list::list;
pub use load::load;
pub use page::view;
pub use private::PrivateDir;
pub use program::keeper::become_keeper;
pub use proof::proof;
pub use renew::renew;
pub use reset::reset;
pub use resume::resume;
pub use run::run;
pub use scenario::{read_scenario, scenario};
pub use scraper::Scraper;
pub use serve::serve;
pub use signals::{INTERRUPTED, stop_on_signals};
pub use status::status;
pub use stop::stop;
pub use supervisor::say_ready;
pub use suspend::suspend;
pub use tunables::{get, set};
pub use update::update;
pub use zinject::zinject;
