//! Limits the number of connections, in total and per peer.
//!
//! The budget guarantees a little memory to each connection, so only a limit on the number of connections
//! limits their total memory. One peer may have at most half of the connections, so that this peer cannot
//! keep other peers out.

use std::collections::HashMap;
use std::sync::Arc;

use crate::complain::complain;

/// Counts connections, each until its [`Permit`] is dropped.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLimit {
    all: Arc<()>,
    peers: HashMap<String, Arc<()>>,
    /// Whether a refusal was reported. If every refusal were reported, a peer could make dashpot write
    /// messages without end.
    has_warned: bool,
}

/// The right to be connected. A connection holds its permit for as long as the connection lives.
#[derive(Debug)]
pub(crate) struct Permit {
    _of_all: Arc<()>,
    _of_peer: Arc<()>,
}

impl ConnectionLimit {
    /// Gives a new connection of a peer its permit. `None` if there are too many connections.
    pub(crate) fn admit(&mut self, peer: &str) -> Option<Permit> {
        if self.peers.len() >= CONNECTIONS_MAX {
            self.peers.retain(|_, peer| living(peer) > 0);
        }
        let of_peer = self.peers.get(peer).map_or(0, living);
        let refuses = living(&self.all) >= CONNECTIONS_MAX || of_peer >= OF_PEER_MAX;
        if refuses && !std::mem::replace(&mut self.has_warned, true) {
            warn_that_it_is_full(peer, of_peer);
        }
        if refuses {
            return None;
        }
        let of_peer = self.peers.entry(peer.to_owned()).or_default();
        Some(Permit {
            _of_all: Arc::clone(&self.all),
            _of_peer: Arc::clone(of_peer),
        })
    }
}

/// Warns that connections are refused.
fn warn_that_it_is_full(peer: &str, of_peer: usize) {
    complain(format_args!(
        "dashpot: a connection is refused: {peer} already has {of_peer}; one client may have \
         {OF_PEER_MAX} connections, and all clients together {CONNECTIONS_MAX}"
    ));
}

fn living(count: &Arc<()>) -> usize {
    Arc::strong_count(count) - 1
}

/// The largest number of connections at once, including those that are still shaking hands.
const CONNECTIONS_MAX: usize = 4_096;
/// The largest number of connections of one peer.
const OF_PEER_MAX: usize = CONNECTIONS_MAX / 2;

#[cfg(test)]
mod tests {
    use super::{CONNECTIONS_MAX, ConnectionLimit, OF_PEER_MAX};

    #[test]
    fn one_peer_leaves_room_for_the_others() {
        let mut limit = ConnectionLimit::default();
        let mut greedy: Vec<_> = (0..OF_PEER_MAX).map(|_| limit.admit("greedy")).collect();
        assert!(greedy.iter().all(Option::is_some));
        assert!(limit.admit("greedy").is_none());
        assert!(limit.admit("another").is_some());
        greedy.pop();
        assert!(limit.admit("greedy").is_some(), "one has gone");
    }

    #[test]
    fn there_is_a_most_of_all_and_who_has_gone_is_forgotten() {
        let mut limit = ConnectionLimit::default();
        let admit = |limit: &mut ConnectionLimit| {
            let peers = (0..CONNECTIONS_MAX).map(|peer| limit.admit(&peer.to_string()));
            peers.collect::<Vec<_>>()
        };
        let all = admit(&mut limit);
        assert!(all.iter().all(Option::is_some));
        assert!(limit.admit("one more").is_none());
        drop(all);
        assert!(limit.admit("one more").is_some());
        assert_eq!(limit.peers.len(), 1);
    }
}
