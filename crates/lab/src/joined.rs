//! The pools and volumes of a lab, for daemons and simulations alike.

use dashpot_rules::{ParseError, PoolSpec, StoreConfig, VolumeSpec, parse_store};

use crate::pool::{Disks, PoolDraft, read_pool};
use crate::section::Section;
use crate::volume::read_volume;

/// The pools and volumes of a lab.
pub(crate) struct Joined {
    pub(crate) pools: Vec<PoolSpec>,
    pub(crate) volumes: Vec<VolumeSpec>,
    /// The places of the pools and of the volumes in the file.
    pub(crate) places: (Vec<String>, Vec<String>),
}

/// Reads the pools of a lab, and their volumes.
pub(crate) fn read_joined(file: &Section<'_>, disks: &mut Disks<'_>) -> Result<Joined, ParseError> {
    let mut places = (Vec::new(), Vec::new());
    let stores = read_stores(file)?;
    let mut drafts = Vec::new();
    for (name, section) in file.named("pool")? {
        places.0.push(section.place());
        let draft = read_pool(section, name, disks)?;
        draft.check_stores(&stores)?;
        drafts.push(draft);
    }
    let mut volumes = Vec::new();
    for (name, section) in file.named("volume")? {
        places.1.push(section.place());
        volumes.push(read_volume(&section, name, &mut drafts)?);
    }
    let pools = drafts.into_iter().map(PoolDraft::finish);
    Ok(Joined {
        pools: pools.collect::<Result<Vec<_>, ParseError>>()?,
        volumes,
        places,
    })
}

/// The stores of the disks, in the order of the file.
fn read_stores(file: &Section<'_>) -> Result<Vec<StoreConfig>, ParseError> {
    let disks = file.named("disk")?.into_iter();
    let store = |(_, disk): (_, Section<'_>)| disk.value("store", parse_store);
    disks.filter_map(|disk| store(disk).transpose()).collect()
}
