//! The news of the kernel's devices that appear or vanish during a watch.

use anyhow::bail;
use dashpot_observe::{Layer, Seen, Stacked, VanishedDevice};
use dashpot_probe::{Device, Gone, Known, Roster};

use crate::named::Named;

/// A roster of these devices. If the user has named none, each disk that appears later belongs to it, too.
pub(crate) fn roster(devices: &[Device], named: Named) -> Roster {
    Roster::new(devices, named == Named::No)
}

/// Moves the news into an interval. If all devices are gone and this interval is not the last, [`check`] will
/// name them, so they are not news.
pub(crate) fn tell(roster: &mut Roster, is_last: bool, seen: &mut Seen) {
    let stacked = roster.watched().filter(|one| !one.over.is_empty());
    seen.stacked = stacked.map(stacked_of).collect();
    seen.gone = roster.gone().map(|gone| gone.name.to_string()).collect();
    let changes = roster.take_changes();
    seen.appeared = changes.appeared.iter().map(ToString::to_string).collect();
    if !roster.is_over() || is_last {
        seen.vanished = changes.vanished.iter().map(vanished).collect();
    }
}

/// Fails if no device is left, and names the vanished devices.
pub(crate) fn check(roster: &Roster) -> anyhow::Result<()> {
    if roster.is_over() {
        let gone: Vec<String> = roster
            .gone()
            .map(|gone| described(&vanished(&gone)))
            .collect();
        bail!(
            "nothing is left to watch, because {} vanished: name a device that is there; 'lsblk' \
             lists them",
            gone.join(", ")
        );
    }
    Ok(())
}

fn stacked_of(one: &Known) -> Stacked {
    Stacked {
        layer: Layer::Disk,
        device: one.name.to_string(),
        over: one.over.clone(),
    }
}

fn vanished(gone: &Gone) -> VanishedDevice {
    VanishedDevice {
        name: gone.name.to_string(),
        is_replaced: gone.replaced.is_some(),
        now: gone
            .replaced
            .as_ref()
            .and_then(|(name, is_watched)| is_watched.then(|| name.to_string())),
    }
}

fn described(device: &VanishedDevice) -> String {
    match device.warning() {
        Some(warning) => format!("{} ({warning})", device.name),
        None => device.name.clone(),
    }
}
