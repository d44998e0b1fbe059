//! The mechanism that makes a disk a block device, and why dashpot did not choose another.

use anyhow::anyhow;
use dashpot_api::MechanismWord;

use crate::cli::With;
use crate::doctor::{Missing, loop_works, nbd_works, ublk_works};

/// The chosen mechanism.
pub(super) struct Choice {
    pub(super) mechanism: MechanismWord,
    /// Why dashpot chose no better one; only if the user left it the choice.
    pub(super) why_not_others: Vec<String>,
}

/// Takes the requested mechanism, or the best one that works.
pub(super) fn choose(with: With) -> anyhow::Result<Choice> {
    let (ublk, nbd) = (ublk_works(), nbd_works());
    let not_others = [said("ublk", &ublk), said("nbd", &nbd)];
    let why_not_others: Vec<String> = not_others.into_iter().flatten().collect();
    let works = match with {
        With::Ublk => ublk.map(|()| MechanismWord::Ublk),
        With::Nbd => nbd.map(|()| MechanismWord::Nbd),
        With::Auto if ublk.is_ok() => Ok(MechanismWord::Ublk),
        With::Auto if nbd.is_ok() => Ok(MechanismWord::Nbd),
        With::Loop | With::Auto => loop_works().map(|()| MechanismWord::Loop),
    };
    let mechanism = works.map_err(|Missing { why, change }| {
        let others = match with {
            With::Auto => format!(" ({})", why_not_others.join("; ")),
            _ => String::new(),
        };
        let with = with.name();
        anyhow!("--with {with}: {why}: {change}; NBD clients need none of it{others}")
    })?;
    Ok(Choice {
        mechanism,
        why_not_others: match with {
            With::Auto => why_not_others,
            _ => Vec::new(),
        },
    })
}

fn said<T>(way: &str, works: &Result<T, Missing>) -> Option<String> {
    let missing = works.as_ref().err()?;
    Some(format!("{way}: {}", missing.why))
}
