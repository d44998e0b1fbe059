//! Requests that change something, and their answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Rule;

/// Which program answers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct VersionInfo {
    /// The daemon's version.
    pub version: String,
    /// The version of this API.
    pub api: String,
}

impl VersionInfo {
    /// This program and its API.
    pub fn current() -> VersionInfo {
        VersionInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api: "v1".to_owned(),
        }
    }
}

/// Arms rules, all or none.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Inject {
    /// The rule in the words of `dashpot inject`; several `-D` are several rules of one group.
    #[schema(example = "-D 10ms:1 -T read")]
    pub rule: String,
    /// A name for it, in place of `--name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The pool that zinject was given. Such rules of a disk are one group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

/// Replaces what a rule says.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// The rule in the words of `dashpot update`.
    #[schema(example = "-D 20ms:1 -T read")]
    pub rule: String,
}

/// Suspends a disk.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    /// Resume by itself after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// Answer at once, whatever is in flight.
    #[serde(default)]
    pub now: bool,
}

/// A disk is suspended.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Suspended {
    /// Zios still in flight.
    pub in_flight: u32,
}

/// A disk is resumed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Resumed {
    /// Zios that had waited, and are issued now.
    pub waiting: u32,
}

/// Rules are gone.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Cleared {
    /// Their ids.
    pub cleared: Vec<u32>,
    /// The disks whose rules could not be cleared.
    pub failed: Vec<Failure>,
}

/// Why nothing was done to a disk, while others were changed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    pub disk: String,
    pub error: String,
}

/// Everything is as it was at the start; counters of disks are kept.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RulesReset {
    /// The ids of the rules that are gone.
    pub cleared: Vec<u32>,
    /// The lab's own rules, armed again.
    pub armed: Vec<Rule>,
    /// The disks that could not be reset.
    pub failed: Vec<Failure>,
}

/// Nothing was changed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Error {
    /// What was wrong.
    pub error: String,
    /// What to do instead, if that is not clear from the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}
