//! The kernel's devices that the user names.

use anyhow::bail;
use dashpot_probe::{Device, all_beneath};

/// Whether `words` cannot be the name of a daemon's disk or volume. The name of a volume contains a '/', but
/// does not begin with one.
pub(crate) fn is_surely_the_kernels(words: &str) -> bool {
    words.starts_with('/') || (words.contains(',') && !words.starts_with(','))
}

/// The kernel's devices with these names, paths or numbers, each once.
pub(crate) fn find_all(words: &[String]) -> anyhow::Result<Vec<Device>> {
    let mut devices: Vec<Device> = Vec::new();
    for words in words {
        let device = Device::find(words)?;
        if !device.is_there() {
            bail!(
                "'{words}' has no size, so there is nothing to watch: set it up first, 'lsblk -a' \
                 shows sizes"
            );
        }
        if let Some(whole) = devices.iter().find(|other| shares_sectors(other, &device)) {
            if whole.number == device.number {
                continue;
            }
            bail!(
                "{} and {} are one disk, whose I/O would be counted twice: name one of them",
                whole.name,
                device.name
            );
        }
        devices.push(device);
    }
    for device in &devices {
        let below = all_beneath(device);
        let is_below = |one: &&Device| below.iter().any(|below| shares_sectors(one, below));
        if let Some(below) = devices.iter().find(is_below) {
            bail!("{}", twice(&device.name, &below.name));
        }
    }
    Ok(devices)
}

/// Why two disks cannot be in one report.
pub(crate) fn twice(upper: &str, lower: &str) -> String {
    format!("{upper} is over {lower}, so its I/O would be counted twice: name one of them")
}

fn shares_sectors(one: &Device, other: &Device) -> bool {
    let is_part = one.part.is_some() && other.part.is_some();
    one.number == other.number || (one.disk == other.disk && !is_part)
}
