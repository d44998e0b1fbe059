//! The memory that callers and clients make the daemon hold.

use dashpot_api::{ClientMemory, Memory};
use dashpot_export::Held;

use crate::answers::AnswerMemory;
use crate::limits::RulesHeld;

pub(crate) fn memory(answers: &AnswerMemory, rules: RulesHeld) -> Memory {
    Memory {
        answers_bytes: answers.used() as u64,
        answers_max_bytes: answers.max() as u64,
        rules: rules.rules as u64,
        rules_max: rules.rules_max as u64,
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
