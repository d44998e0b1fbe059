//! The command line: the commands, their options, and their help.
//!
//! This crate has definitions and parsers: it runs no command. [`dashpot_rules`] parses the values, so a wrong value
//! ends the program here, with a message and exit code 2. Only `zinject` parses its own words, because clap
//! cannot express its grammar.
//!
//! A doc comment on an option or a command is its help. The variants of the enums of commands and of
//! words have none, because the help would show it.

// In help, `[1]` is a default, not a link.
#![allow(rustdoc::broken_intra_doc_links)]

mod attach;
mod check;
mod control;
mod diff;
mod dmsetup;
mod generate;
mod inflight;
mod lab;
mod load;
mod no_api;
mod page;
mod pool;
mod proof;
mod record;
pub mod reports;
mod rule;
mod scenario;
mod stats;
mod top;
mod when;
mod words;
mod zinject;

pub use attach::{AttachArgs, DetachArgs, FileSystem, MountArgs, With};
pub use check::CheckArgs;
pub use control::{
    ClearArgs, CrashArgs, DoctorArgs, FaultsArgs, InjectArgs, ListArgs, RenewArgs, ResetArgs,
    ResumeArgs, StatusArgs, StopArgs, SuspendArgs, UpdateArgs,
};
pub use diff::DiffArgs;
pub use dmsetup::{DmAction, DmsetupArgs, TableArgs};
pub use generate::{CompletionsArgs, InstallArgs, ManArgs};
pub use inflight::InflightArgs;
pub use lab::{
    AttachedArgs, LabArgs, OnLoss, RunArgs, ServeArgs, ServiceArgs, SpinWhen, UringWord,
};
pub use load::LoadArgs;
pub use no_api::NoApi;
pub use page::{PageArgs, Speed, ViewArgs, parse_speed};
pub use pool::{GetArgs, SetArgs};
pub use proof::ProofArgs;
pub use record::{BackgroundArgs, CutArgs, KeepArgs, RecordArgs, RecordCommand, ShowArgs};
pub use scenario::{
    ScenarioArgs, ScenarioCommand, ScenarioListArgs, ScenarioRunArgs, ScenarioShowArgs,
    ScenarioStopArgs,
};
pub use stats::StatsArgs;
pub use top::TopArgs;
pub use when::{Between, When};
pub use words::{dimension, each_once, layer};
pub use zinject::{ZinjectArgs, zinject_help, zinject_usage};
