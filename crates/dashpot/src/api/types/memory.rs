//! What clients and callers make the daemon hold, beside the most that they may.

use dashpot_export::Held;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::daemon::{AnswerMemory, RulesHeld};

/// What callers of the API make the daemon hold, and the most that they may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Memory {
    /// Answers that are being made, or that callers have not taken yet. Those of at most 64 KiB are
    /// not counted.
    pub(crate) answers_bytes: u64,
    pub(crate) answers_max_bytes: u64,
    /// Rules of all disks.
    pub(crate) rules: u64,
    pub(crate) rules_max: u64,
    /// Lanes of all rules.
    pub(crate) lanes: u64,
    pub(crate) lanes_max: u64,
}

/// What NBD clients make a shard hold, and the most that they may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct ClientMemory {
    /// Zios in flight.
    pub(crate) zios: u32,
    pub(crate) zios_max: u32,
    /// Payloads of writes that are held or received, and of replies.
    pub(crate) payload_bytes: u64,
    pub(crate) payload_max_bytes: u64,
    /// What connections keep beside their requests: bytes received and not looked at, and replies
    /// that their clients do not take. Above the most, connections are read a little at a time.
    pub(crate) buffered_bytes: u64,
    pub(crate) buffered_max_bytes: u64,
    pub(crate) connections: u32,
}

impl Memory {
    pub(crate) fn of(answers: &AnswerMemory, rules: RulesHeld) -> Memory {
        Memory {
            answers_bytes: answers.used() as u64,
            answers_max_bytes: answers.max() as u64,
            rules: rules.rules as u64,
            rules_max: rules.rules_max as u64,
            lanes: rules.lanes,
            lanes_max: rules.lanes_max,
        }
    }
}

impl ClientMemory {
    pub(crate) fn of(held: Held) -> ClientMemory {
        ClientMemory {
            zios: held.zios,
            zios_max: held.zios_max,
            payload_bytes: held.payload,
            payload_max_bytes: held.payload_max,
            buffered_bytes: held.kept,
            buffered_max_bytes: held.kept_max,
            connections: held.connections,
        }
    }
}
