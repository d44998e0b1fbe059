//! The tunables of a pool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A tunable of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TunableValue {
    /// The tunable's name, which is ZFS's name if ZFS has the tunable.
    #[schema(example = "zfs_delay_scale")]
    pub name: String,
    /// The value in force, in the tunable's unit; for a choice, the index of its word in `choices`.
    #[schema(example = 500_000)]
    pub value: u64,
    /// The value in the words of a lab file.
    #[schema(example = "500us")]
    pub words: String,
    /// The unit: `bytes`, `percent`, `ns`, `ms`, `s`, `count` or `choice`.
    #[schema(example = "ns")]
    pub unit: String,
    /// ZFS's default on a machine with the memory that the lab names.
    pub default: u64,
    /// The default in the words of a lab file.
    pub default_words: String,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// The words of a choice; empty for numbers.
    pub choices: Vec<String>,
    /// The tunable's effect, in one sentence.
    pub help: String,
}

/// Sets the named tunables. If the daemon refuses one of them, it sets none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetTunables {
    /// The new values, by name, in the words of a lab file (`500us`, `64M`, `on`). A number without a unit
    /// is in the tunable's own unit.
    pub tunables: BTreeMap<String, String>,
}
