//! How many connections there are, in all and of each peer.
//!
//! What a connection can make a shard hold for certain is little, and so is the sum, if there is a
//! most of them. One peer may have half of these, so that it cannot keep the others out.

use std::collections::HashMap;
use std::sync::Arc;

/// Counts connections for as long as their [`Admission`] lives.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    all: Arc<()>,
    peers: HashMap<String, Arc<()>>,
    /// Whether the last one was refused.
    refuses: bool,
}

/// What a connection has for as long as it lives.
#[derive(Debug)]
pub(crate) struct Admission {
    _of_all: Arc<()>,
    _of_peer: Arc<()>,
}

impl Crowd {
    /// Lets a connection of a peer in, unless there are too many.
    pub(super) fn admit(&mut self, peer: &str) -> Option<Admission> {
        if self.peers.len() >= CONNECTIONS_MAX {
            self.peers.retain(|_, peer| living(peer) > 0);
        }
        let of_peer = self.peers.get(peer).map_or(0, living);
        let refuses = living(&self.all) >= CONNECTIONS_MAX || of_peer >= OF_PEER_MAX;
        let began = refuses && !std::mem::replace(&mut self.refuses, refuses);
        if began {
            say_that_it_is_full(peer, of_peer);
        }
        if refuses {
            return None;
        }
        let of_peer = self.peers.entry(peer.to_owned()).or_default();
        Some(Admission {
            _of_all: Arc::clone(&self.all),
            _of_peer: Arc::clone(of_peer),
        })
    }
}

/// Once, and not for each that is refused.
fn say_that_it_is_full(peer: &str, of_peer: usize) {
    crate::complain::complain(format_args!(
        "dashpot: a connection of {peer} is refused, because it has {of_peer} already, or all have \
         {CONNECTIONS_MAX}: one client may have {OF_PEER_MAX}"
    ));
}

fn living(count: &Arc<()>) -> usize {
    Arc::strong_count(count) - 1
}

/// Connections at once, with those that shake hands.
const CONNECTIONS_MAX: usize = 4_096;
/// Of one peer.
const OF_PEER_MAX: usize = CONNECTIONS_MAX / 2;

#[cfg(test)]
mod tests {
    use super::{CONNECTIONS_MAX, Crowd, OF_PEER_MAX};

    #[test]
    fn one_peer_leaves_room_for_the_others() {
        let mut crowd = Crowd::default();
        let mut greedy: Vec<_> = (0..OF_PEER_MAX).map(|_| crowd.admit("greedy")).collect();
        assert!(greedy.iter().all(Option::is_some));
        assert!(crowd.admit("greedy").is_none());
        assert!(crowd.admit("another").is_some());
        greedy.pop();
        assert!(crowd.admit("greedy").is_some(), "one has gone");
    }

    #[test]
    fn there_is_a_most_of_all_and_who_has_gone_is_forgotten() {
        let mut crowd = Crowd::default();
        let admit = |crowd: &mut Crowd| {
            let peers = (0..CONNECTIONS_MAX).map(|peer| crowd.admit(&peer.to_string()));
            peers.collect::<Vec<_>>()
        };
        let all = admit(&mut crowd);
        assert!(all.iter().all(Option::is_some));
        assert!(crowd.admit("one more").is_none());
        drop(all);
        assert!(crowd.admit("one more").is_some());
        assert_eq!(crowd.peers.len(), 1);
    }
}
