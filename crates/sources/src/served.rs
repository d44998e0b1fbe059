//! The names of a daemon's disks and volumes, by layer.

use dashpot_api::{Export, LayerWord};
use dashpot_observe::Layer;

use crate::ios::Devices;

/// These devices at a layer.
pub(crate) fn at(layer: Layer, names: &[String]) -> Devices {
    names.iter().map(|name| (name.clone(), layer)).collect()
}

/// The names of the devices of a layer. A store's figures are part of its disk's figures.
pub(crate) fn of_layer<'a>(
    layer: Layer,
    disks: &'a [String],
    volumes: &'a [String],
) -> &'a [String] {
    match layer {
        Layer::Volume => volumes,
        Layer::Disk | Layer::Store | Layer::Fs | Layer::Kernel => disks,
    }
}

/// The disks and the volumes among these names; `None` if the daemon serves no device with one of the names.
pub(crate) fn by_layer(names: &[String], exports: &[Export]) -> Option<(Vec<String>, Vec<String>)> {
    let find = |name: &String| exports.iter().find(|export| export.name == *name);
    let found = names.iter().map(find).collect::<Option<Vec<&Export>>>()?;
    Some(split(found.into_iter()))
}

/// The names of the disks, and the names of the volumes.
pub(crate) fn split<'a>(exports: impl Iterator<Item = &'a Export>) -> (Vec<String>, Vec<String>) {
    let (disks, volumes): (Vec<&Export>, Vec<&Export>) =
        exports.partition(|export| export.layer == LayerWord::Disk);
    let names = |exports: Vec<&Export>| {
        let names = exports.iter().map(|export| export.name.clone());
        names.collect()
    };
    (names(disks), names(volumes))
}
