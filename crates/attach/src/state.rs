//! The present state of a recorded attachment.

use std::path::Path;

use dashpot_api::{Client, DeviceIo, MechanismWord};
use dashpot_export::store::device_users;

use crate::answers::Answers;
use crate::block_device::{is_at, is_free};
use crate::netlink::RECONNECT_SECONDS;
use crate::place::{LockedDirectory, Record, records};
use crate::sysfs::{queue_of, sequence};

/// Whether the node is still the attached device.
pub(crate) fn is_ours(place: &LockedDirectory, record: &Record) -> bool {
    is_of(record, &place.file(&record.disk))
}

/// Whether the record's node is still the device that was made for this path. If the mount namespace has ended in
/// which a loop device was made, the kernel no longer shows the path; the device still has its sequence number,
/// which no other device of the node gets.
pub(crate) fn is_of(record: &Record, path: &Path) -> bool {
    let is_same = || record.sequence.is_some() && record.sequence == sequence(&record.node);
    is_at(&record.node, record.mechanism, path)
        || is_same() && !is_free(&record.node, record.mechanism)
}

/// Whether it is certain that the attachment's daemon no longer serves the node.
pub(crate) fn is_stale(place: &LockedDirectory, record: &Record, answers: &Answers) -> bool {
    let has_ended = record.daemon.is_some_and(|daemon| !daemon.is_alive());
    has_ended || answers.deny(record) || !is_ours(place, record)
}

/// The clients and the I/O of the disk or volume; `None` if the daemon does not answer, or no longer has the
/// disk or volume.
pub(crate) fn io_of(client: &Client, record: &Record) -> Option<DeviceIo> {
    let (layer, name) = record.key();
    client.io(layer, name).ok()
}

/// Whether the attachment's daemon is gone, and I/O waits in the kernel's NBD client for another daemon.
pub(crate) fn waits(place: &LockedDirectory, record: &Record, answers: &Answers) -> bool {
    record.mechanism == MechanismWord::Nbd
        && is_ours(place, record)
        && is_stale(place, record, answers)
}

/// Like [`waits`], but first asks the attachment's daemon whether it still serves the node.
pub(crate) fn waits_now(place: &LockedDirectory, record: &Record) -> bool {
    record.mechanism == MechanismWord::Nbd
        && waits(place, record, &Answers::about(std::iter::once(record)))
}

/// For each device that a daemon leaves attached, a sentence that says what happens to the device when the
/// daemon ends. `api` is the address of the daemon's API, and `pid` its process: an earlier daemon may have had the
/// same address. Leaves out the devices in `own`.
pub fn left_at(api: &str, pid: u32, own: &[&str]) -> Vec<String> {
    let left = records().into_iter().filter(|(path, record)| {
        record.api == api
            && record.daemon.is_none_or(|daemon| daemon.pid() == pid)
            && !own.contains(&record.node.as_str())
            && is_of(record, path)
    });
    let sentences = left.map(|(_, record)| {
        let fate = match record.mechanism {
            MechanismWord::Nbd => format!(
                "its next I/O waits for a daemon with the same bytes for {RECONNECT_SECONDS} s, then fails"
            ),
            MechanismWord::Loop => "its I/O fails from now on".to_owned(),
            // The driver removes the device when its daemon ends.
            MechanismWord::Ublk => "it ends now".to_owned(),
        };
        format!(
            "{} ({}) is still attached: {fate}; 'dashpot detach --stale', as root, removes what is left",
            record.node,
            record.words()
        )
    });
    sentences.collect()
}

/// Whether a program has the node open or I/O of the node is in flight.
pub(crate) fn is_used(record: &Record) -> bool {
    let in_flight = queue_of(&record.node).map_or(0, |queue| queue.in_flight);
    in_flight > 0 || !device_users(&record.node).is_empty()
}
