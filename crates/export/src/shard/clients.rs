//! The clients of one export, and how many connections each has.

use std::sync::Arc;

use dashpot_engine::{CLIENTS_TOLD_APART, ClientId};

use crate::snapshot::ClientView;

#[derive(Debug, Default)]
pub(super) struct ClientTable {
    /// The clients, by [`ClientId`]. An entry without connections is free.
    clients: Vec<Client>,
    /// How many connections belong to clients that have no entry of their own, and are counted together.
    others: u32,
}

#[derive(Debug)]
struct Client {
    name: Arc<str>,
    connections: u32,
}

impl ClientTable {
    /// Counts a new connection. Returns its client, and whether that client is new.
    pub(super) fn connect(&mut self, name: &str) -> (ClientId, bool) {
        if let Some(at) = self
            .clients
            .iter()
            .position(|c| c.connections > 0 && *c.name == *name)
        {
            self.clients[at].connections += 1;
            return (ClientId(at as u8), false);
        }
        let client = Client {
            name: name.into(),
            connections: 1,
        };
        if let Some(at) = self
            .clients
            .iter()
            .position(|client| client.connections == 0)
        {
            self.clients[at] = client;
            return (ClientId(at as u8), true);
        }
        if self.clients.len() < usize::from(CLIENTS_TOLD_APART) {
            self.clients.push(client);
            return (ClientId(self.clients.len() as u8 - 1), true);
        }
        self.others += 1;
        (ClientId::OTHER, false)
    }

    pub(super) fn disconnect(&mut self, id: ClientId) {
        match self.clients.get_mut(usize::from(id.0)) {
            Some(client) => client.connections -= 1,
            None => self.others -= 1,
        }
    }

    /// The name of a connected client.
    pub(super) fn name(&self, id: ClientId) -> Arc<str> {
        let client = self.clients.get(usize::from(id.0));
        client.map_or_else(|| OTHERS.into(), |client| Arc::clone(&client.name))
    }

    pub(super) fn views(&self) -> Vec<ClientView> {
        let told_apart = self
            .clients
            .iter()
            .enumerate()
            .map(|(at, client)| ClientView {
                id: ClientId(at as u8),
                name: client.name.to_string(),
                connections: client.connections,
            });
        let others = ClientView {
            id: ClientId::OTHER,
            name: OTHERS.to_owned(),
            connections: self.others,
        };
        let mut views: Vec<ClientView> = told_apart.chain([others]).collect();
        views.retain(|view| view.connections > 0);
        views
    }
}

/// The common name of the clients that are counted together.
const OTHERS: &str = "other";

#[cfg(test)]
mod tests {
    use super::ClientTable;
    use dashpot_engine::ClientId;

    #[test]
    fn a_client_is_a_peer_not_a_connection() {
        let mut table = ClientTable::default();
        assert_eq!(table.connect("a"), (ClientId(0), true));
        assert_eq!(table.connect("a"), (ClientId(0), false));
        assert_eq!(table.connect("b"), (ClientId(1), true));
        table.disconnect(ClientId(0));
        table.disconnect(ClientId(0));
        assert_eq!(table.connect("c"), (ClientId(0), true));
        assert_eq!(table.views().len(), 2);
    }

    #[test]
    fn the_sixty_fifth_is_other() {
        let mut table = ClientTable::default();
        for number in 0..64 {
            assert_eq!(table.connect(&number.to_string()).0, ClientId(number));
        }
        assert_eq!(table.connect("one more"), (ClientId::OTHER, false));
        assert_eq!(table.connect("63"), (ClientId(63), false));
        table.disconnect(ClientId::OTHER);
        table.disconnect(ClientId(5));
        assert_eq!(table.connect("one more"), (ClientId(5), true));
    }
}
