//! The clients of zios. A client is a peer identity (uid and pid, or an address), not a connection. The
//! clients of a pool's disks are the pool's volumes, and the pool itself.
//!
//! The engine distinguishes at most [`CLIENTS_TOLD_APART`] clients per disk; the others share one identity.
//! The caller chooses the ids. The engine keeps the names of clients, because the globs of rules match
//! names.

use alloc::string::String;
use alloc::vec::Vec;

/// How many clients of one disk the engine distinguishes.
pub const CLIENTS_TOLD_APART: u8 = 64;

/// The id of a client of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u8);

impl ClientId {
    /// The id that all clients beyond [`CLIENTS_TOLD_APART`] share.
    pub const OTHER: ClientId = ClientId(CLIENTS_TOLD_APART);

    /// The pool itself, as a client of its disks. The pool syncs txgs and repairs mirrors without a request
    /// from a volume.
    pub const POOL: ClientId = ClientId(CLIENTS_TOLD_APART - 1);

    /// The client with this index. Clients beyond [`CLIENTS_TOLD_APART`] share one identity.
    pub fn of_index(index: usize) -> ClientId {
        let index = u8::try_from(index).unwrap_or(CLIENTS_TOLD_APART);
        ClientId(index.min(CLIENTS_TOLD_APART))
    }

    /// The volume with this index in its pool, as a client of the pool's disks. Volumes beyond the first 63
    /// share one identity.
    pub fn of_volume(index: usize) -> ClientId {
        match ClientId::of_index(index) {
            volume if volume < ClientId::POOL => volume,
            _ => ClientId::OTHER,
        }
    }
}

/// The names of a disk's clients.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    names: Vec<(ClientId, String)>,
}

impl Clients {
    /// Gives the client `id` a name, which replaces its old name.
    pub(crate) fn join(&mut self, id: ClientId, name: &str) {
        self.names.retain(|(other, _)| *other != id);
        self.names.push((id, name.into()));
    }

    /// The clients that have names, in the order in which they got them.
    pub(crate) fn names(&self) -> impl Iterator<Item = (ClientId, &str)> {
        self.names.iter().map(|(id, name)| (*id, name.as_str()))
    }

    /// The clients whose names match `glob`. Clients that share an identity are named `other`.
    pub(crate) fn matching(&self, glob: &str) -> ClientSet {
        let mut set = ClientSet::default();
        for (id, name) in &self.names {
            if glob_matches(glob.as_bytes(), name.as_bytes()) {
                set.insert(*id);
            }
        }
        if glob_matches(glob.as_bytes(), b"other") {
            set.insert(ClientId::OTHER);
        }
        set
    }
}

/// A set of clients of one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientSet(u128);

impl ClientSet {
    fn insert(&mut self, id: ClientId) {
        self.0 |= 1 << id.0;
    }

    pub(crate) fn contains(self, id: ClientId) -> bool {
        self.0 & (1 << id.0) != 0
    }
}

/// Whether `text` matches `glob`, in which `*` stands for any run of bytes and `?` for any one byte.
pub fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    glob_matches_by(glob, text, |glob, byte| {
        let first = *glob.first()?;
        (first == b'?' || first == byte).then_some(1)
    })
}

/// Whether `text` matches `glob`, in which `*` stands for any run of bytes. `one` returns how many bytes at
/// the beginning of a glob match a given byte of the text, or `None` if the beginning of the glob does not
/// match this byte.
pub fn glob_matches_by(glob: &[u8], text: &[u8], one: impl Fn(&[u8], u8) -> Option<usize>) -> bool {
    let (mut g, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if g < glob.len() && glob[g] == b'*' {
            star = Some((g, t));
            g += 1;
        } else if let Some(length) = one(&glob[g..], text[t]) {
            g += length;
            t += 1;
        } else if let Some((star_at, from)) = star {
            star = Some((star_at, from + 1));
            g = star_at + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    glob[g..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::{ClientId, Clients, glob_matches};

    #[test]
    fn globs() {
        for (glob, text, matches) in [
            ("*", "", true),
            ("uid=0 *", "uid=0 pid=7", true),
            ("*pid=7", "uid=0 pid=77", false),
            ("10.?.0.*", "10.1.0.9", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("", "a", false),
            ("*W*", "WF", true),
            ("W?", "W", false),
            ("R", "RA", false),
        ] {
            let got = glob_matches(glob.as_bytes(), text.as_bytes());
            assert_eq!(got, matches, "{glob} on {text}");
        }
    }

    #[test]
    fn an_id_that_is_used_again_has_its_new_name_only() {
        let mut clients = Clients::default();
        clients.join(ClientId(3), "old");
        clients.join(ClientId(3), "new");
        assert!(!clients.matching("old").contains(ClientId(3)));
        assert!(clients.matching("n*").contains(ClientId(3)));
        assert!(!clients.matching("n*").contains(ClientId::OTHER));
        assert!(clients.matching("*").contains(ClientId::OTHER));
    }
}
