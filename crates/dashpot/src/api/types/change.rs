//! Requests that change something, and their answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Rule;
use crate::daemon::Refusal;

/// Which program answers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct VersionInfo {
    /// The daemon's version.
    pub(crate) version: String,
    /// The version of this API.
    pub(crate) api: String,
}

/// Arms rules, all or none.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Inject {
    /// The rule in the words of `dashpot inject`; several `-D` are several rules of one group.
    #[schema(example = "-D 10ms:1 -T read")]
    pub(crate) rule: String,
    /// A name for it, in place of `--name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The pool that zinject was given. Such rules of a disk are one group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pool: Option<String>,
}

/// Replaces what a rule says.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Update {
    /// The rule in the words of `dashpot update`.
    #[schema(example = "-D 20ms:1 -T read")]
    pub(crate) rule: String,
}

/// Suspends a disk.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suspend {
    /// Resume by itself after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) for_ns: Option<u64>,
    /// Answer at once, whatever is in flight.
    #[serde(default)]
    pub(crate) now: bool,
}

/// A disk is suspended.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Suspended {
    /// Zios still in flight.
    pub(crate) in_flight: u32,
}

/// A disk is resumed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Resumed {
    /// Zios that had waited, and are issued now.
    pub(crate) waiting: u32,
}

/// Rules are gone.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Cleared {
    /// Their ids.
    pub(crate) cleared: Vec<u32>,
    /// The disks whose rules could not be cleared.
    pub(crate) failed: Vec<Failure>,
}

/// Why nothing was done to a disk, while others were changed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Failure {
    pub(crate) disk: String,
    pub(crate) error: String,
}

/// Everything is as it was at the start; counters of disks are kept.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RulesReset {
    /// The ids of the rules that are gone.
    pub(crate) cleared: Vec<u32>,
    /// The lab's own rules, armed again.
    pub(crate) armed: Vec<Rule>,
    /// The disks that could not be reset.
    pub(crate) failed: Vec<Failure>,
}

/// Nothing was changed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Error {
    /// What was wrong.
    pub(crate) error: String,
    /// What to do instead, if that is not clear from the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error {
            error: refusal.error,
            remedy: refusal.remedy,
        }
    }
}
