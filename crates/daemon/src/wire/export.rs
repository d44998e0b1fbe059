//! Converts exports to the API's type.

use dashpot_api::{Export, LayerWord};
use dashpot_export::{DiskInfo, PoolInfo, VolumeInfo};

/// A disk, as it was when the daemon started.
pub(crate) fn disk_export(
    info: &DiskInfo,
    pool: Option<&PoolInfo>,
    uris: &[String],
    failed: Option<String>,
) -> Export {
    Export {
        name: info.name.clone(),
        layer: LayerWord::Disk,
        pool: pool.map(|pool| pool.name.clone()),
        uris: uris.to_vec(),
        store: Some(info.store.clone()),
        size_bytes: info.size,
        block_bytes: info.block,
        read_only: info.read_only,
        shard: info.shard,
        failed,
    }
}

/// A volume, as it was when the daemon started.
pub(crate) fn volume_export(
    info: &VolumeInfo,
    pool: &PoolInfo,
    uris: &[String],
    failed: Option<String>,
) -> Export {
    Export {
        name: info.name.clone(),
        layer: LayerWord::Volume,
        pool: Some(pool.name.clone()),
        uris: uris.to_vec(),
        store: None,
        size_bytes: info.size,
        block_bytes: info.block_size,
        read_only: false,
        shard: pool.shard,
        failed,
    }
}
