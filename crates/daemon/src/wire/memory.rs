//! The memory that callers and clients make the daemon hold, and the daemon's protection against reclaim.

use dashpot_api::{ClientMemory, Memory, Reclaim};
use dashpot_export::Held;
use dashpot_export::reclaim::in_force;

use crate::answers::AnswerMemory;
use crate::limits::RulesHeld;

pub(crate) fn memory(answers: &AnswerMemory, rules: RulesHeld) -> Memory {
    Memory {
        answers_bytes: answers.used() as u64,
        answers_max_bytes: answers.max() as u64,
        rules: rules.rules as u64,
        rules_max: rules.rules_max as u64,
        rules_forgotten: rules.forgotten,
        lanes: rules.lanes,
        lanes_max: rules.lanes_max,
    }
}

pub(crate) fn client_memory(held: Held) -> ClientMemory {
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

/// The protection against reclaim that is in force for this process.
pub(crate) fn reclaim() -> Reclaim {
    let now = in_force();
    Reclaim {
        locked: now.locked,
        io_flusher: now.io_flusher,
        lacks: now.lacks.into_iter().map(str::to_owned).collect(),
    }
}
