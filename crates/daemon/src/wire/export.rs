//! Exports.

use dashpot_api::Export;
use dashpot_export::DiskInfo;

/// A disk, as it was at the start.
pub(crate) fn export(info: &DiskInfo, uris: &[String], failed: Option<String>) -> Export {
    Export {
        name: info.name.clone(),
        uris: uris.to_vec(),
        store: info.store.clone(),
        size_bytes: info.size,
        block_bytes: info.block,
        read_only: info.read_only,
        shard: info.shard,
        failed,
    }
}
