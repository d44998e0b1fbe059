//! The mechanism that makes a disk a block device, and why dashpot did not choose another.

use anyhow::anyhow;
use dashpot_api::MechanismWord;
use dashpot_cli::With;
use dashpot_doctor::{Missing, loop_works, nbd_works, ublk_works};

/// The chosen mechanism.
pub(crate) struct Choice {
    pub(crate) mechanism: MechanismWord,
    /// Why dashpot chose no other mechanism; empty unless the user left the choice to dashpot.
    pub(crate) why_not_others: Vec<String>,
}

/// Takes the requested mechanism, or the best one that works. The best is the kernel's NBD client, which
/// waits for a daemon that is restarted; next comes ublk, which costs the least; a loop device comes last,
/// but works nearly everywhere.
pub(crate) fn choose(with: With) -> anyhow::Result<Choice> {
    let works = match with {
        With::Ublk => ublk_works().map(|()| MechanismWord::Ublk),
        With::Nbd => nbd_works().map(|()| MechanismWord::Nbd),
        With::Loop => loop_works().map(|()| MechanismWord::Loop),
        With::Auto => return choose_best(),
    };
    match works {
        Ok(mechanism) => Ok(Choice {
            mechanism,
            why_not_others: Vec::new(),
        }),
        Err(missing) => Err(cannot(with, missing, "")),
    }
}

fn choose_best() -> anyhow::Result<Choice> {
    let (nbd, ublk) = (nbd_works(), ublk_works());
    let not_ublk = match &ublk {
        Ok(()) => format!("ublk: {UBLK_TOO}"),
        Err(missing) => format!("ublk: {}", missing.why),
    };
    let Err(nbd) = nbd else {
        return Ok(Choice {
            mechanism: MechanismWord::Nbd,
            why_not_others: vec![not_ublk],
        });
    };
    let not_nbd = format!("nbd: {}", nbd.why);
    if ublk.is_ok() {
        return Ok(Choice {
            mechanism: MechanismWord::Ublk,
            why_not_others: vec![not_nbd],
        });
    }
    let others = vec![not_nbd, not_ublk];
    match loop_works() {
        Ok(()) => Ok(Choice {
            mechanism: MechanismWord::Loop,
            why_not_others: others,
        }),
        Err(missing) => {
            let others = format!(" ({})", others.join("; "));
            Err(cannot(With::Auto, missing, &others))
        }
    }
}

fn cannot(with: With, Missing { why, change }: Missing, others: &str) -> anyhow::Error {
    let with = with.name();
    anyhow!("--with {with}: {why}: {change}; programs that speak NBD need no block device{others}")
}

/// Why `auto` takes the kernel's NBD client although ublk works, too.
const UBLK_TOO: &str = "works, too, and takes less CPU, but the device ends with its daemon";
