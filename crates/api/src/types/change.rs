//! Requests that change something, and their answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Rule;

/// The version of the program that answers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct VersionInfo {
    /// The daemon's version.
    pub version: String,
    /// The version of this API.
    pub api: String,
}

impl VersionInfo {
    /// The version of this program and of its API.
    pub fn current() -> VersionInfo {
        VersionInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api: "v1".to_owned(),
        }
    }
}

/// Arms rules: all of them, or none if one cannot be armed.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Inject {
    /// The rule in the words of `dashpot inject`; several `-D` make several rules of one group.
    #[schema(example = "-D 10ms:1 -T read")]
    pub rule: String,
    /// The name of the rules, in place of `--name`; null for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The pool that a zinject command named, or null. The rules with the same disk and pool form one group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

/// Replaces the words of an armed rule; the rule's counters continue.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// The rule in the words of `dashpot update`.
    #[schema(example = "-D 20ms:1 -T read")]
    pub rule: String,
}

/// Renews the lease of a rule.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Renew {
    /// How long the lease lasts from now on; null for as long as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ns: Option<u64>,
}

/// Suspends a disk.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    /// The disk resumes by itself after this time; null if it resumes only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// Whether to answer at once, and not wait for the zios in flight to end.
    #[serde(default)]
    pub now: bool,
}

/// A disk is suspended.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Suspended {
    /// Number of zios still in flight.
    pub in_flight: u32,
}

/// A disk is resumed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Resumed {
    /// Number of zios that waited for the disk to resume, and are issued now.
    pub waiting: u32,
}

/// The result of clearing rules.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Cleared {
    /// The ids of the rules that were cleared.
    pub cleared: Vec<u32>,
    /// Number of zios that these rules still hold, and that complete when they are due.
    pub held: u64,
    /// How many of these zios hang, and never complete by themselves.
    pub hung: u64,
    /// The disks whose rules could not be cleared.
    pub failed: Vec<Failure>,
}

/// A disk that the call could not change, though the call may have changed other disks.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// The name of the disk.
    pub disk: String,
    /// The error, with its remedy.
    pub error: String,
}

/// The rules are again those with which the daemon started. The disks keep their counters.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RulesReset {
    /// The ids of the rules that the reset cleared.
    pub cleared: Vec<u32>,
    /// The lab's own rules, armed again.
    pub armed: Vec<Rule>,
    /// The disks that could not be reset.
    pub failed: Vec<Failure>,
}

/// The daemon ends.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Stopped {
    /// The id of the daemon's process.
    pub pid: u32,
    /// The disks and volumes that clients could reach.
    pub exports: Vec<String>,
}

/// The request was refused, and nothing was changed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Error {
    /// The error in the request.
    pub error: String,
    /// The remedy; null if the error itself makes it clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}
