//! Computes when the next event of a zio is due.

use super::*;

impl Naive {
    /// When the zio's lanes release the zio.
    pub(super) fn lane_target(&self, charge: &Charge) -> Instant {
        let floors = self.winners(charge, Mode::Floor);
        let base = floors.map(Booking::end).max();
        let target = base.unwrap_or(charge.at).max(charge.at) + self.held_before(charge);
        target.max(charge.released)
    }

    /// The total time for which the zio's `add` lanes hold it.
    pub(super) fn held_before(&self, charge: &Charge) -> Duration {
        let mut sum = Duration::ZERO;
        for booking in self.winners(charge, Mode::Add) {
            sum += booking.end().since(charge.at);
        }
        sum
    }

    pub(super) fn winners(&self, charge: &Charge, mode: Mode) -> impl Iterator<Item = &Booking> {
        let number = charge.number;
        self.bookings
            .iter()
            .filter(move |booking| booking.number == number && booking.mode == mode)
    }

    /// When the zio will reach the server of the bandwidth, if it still has to pass this server.
    pub(super) fn server_due(&self, ticket: &Ticket) -> Option<Instant> {
        let charge = ticket.charge.as_ref()?;
        if charge.rate.is_none() || self.served(charge).is_some() || !ticket.is_waiting() {
            return None;
        }
        Some(self.lane_target(charge))
    }

    /// When the server of the bandwidth finishes the zio; `None` until the zio has reached the server.
    pub(super) fn served(&self, charge: &Charge) -> Option<Instant> {
        let own = self.transfers.iter().find(|t| t.number == charge.number);
        own.map(Transfer::end)
    }

    /// The earliest moment at which the zio may complete; None while the server may still delay it.
    pub(super) fn target(&self, charge: &Charge) -> Option<Instant> {
        match charge.fault {
            Some((_, Fault::Hang(_, until))) => Some(until.max(charge.at)),
            Some((_, Fault::Fail(..))) => Some(self.lane_target(charge)),
            None if charge.rate.is_none() => Some(self.lane_target(charge)),
            None => self.served(charge),
        }
    }

    /// Whether the zio's whole hold comes before the store's work. False for the flush after a FUA write.
    pub(super) fn holds_before_only(&self, charge: &Charge) -> bool {
        if charge.flush || self.winners(charge, Mode::Floor).next().is_some() {
            return false;
        }
        match charge.rate {
            Some(_) if self.served(charge).is_some() => charge.served_before,
            Some((_, _, mode)) => mode == Mode::Add,
            None => self.winners(charge, Mode::Add).next().is_some(),
        }
    }

    pub(super) fn start_due(&self, ticket: &Ticket) -> Option<Instant> {
        let charge = ticket.charge.as_ref()?;
        if ticket.store != Store::NotAsked {
            return None;
        }
        match charge.fault {
            Some((_, Fault::Fail(_, false))) => None,
            Some((_, Fault::Hang(Mode::Add, _))) => self.target(charge),
            Some(_) => Some(charge.at),
            None if self.holds_before_only(charge) => self.target(charge),
            None => Some((charge.at + self.held_before(charge)).max(charge.released)),
        }
    }

    pub(super) fn completion_due(&self, ticket: &Ticket) -> Option<(Instant, Outcome)> {
        let charge = ticket.charge.as_ref()?;
        let target = self.target(charge)?;
        match (ticket.store, charge.fault) {
            (Store::NotAsked, Some((_, Fault::Fail(errno, false)))) => Some((target, Err(errno))),
            (Store::Done(at, _), Some((_, Fault::Fail(errno, _)))) => {
                Some((target.max(at), Err(errno)))
            }
            (Store::Done(at, outcome), _) => Some((target.max(at), outcome)),
            _ => None,
        }
    }
}
