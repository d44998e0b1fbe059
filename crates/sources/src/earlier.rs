//! The I/Os of the kernel's disks that began before the watch.
//!
//! Only the kernel's count shows them. Of each, nothing is known but that it is at least as old as the watch.

use std::sync::Arc;

use dashpot_observe::{EarlierIos, InFlight};
use dashpot_probe::Tracer;

/// The I/Os of a device that began before the watch and have not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub(crate) device: Arc<str>,
    /// How many there are; `None` if the kernel does not count the device's I/Os.
    pub(crate) number: Option<u64>,
    /// When the watch began.
    pub(crate) since_ns: u64,
}

/// The earlier I/Os of each device that is there.
pub(crate) fn earlier(tracer: &Tracer) -> Vec<Earlier> {
    let watched = tracer.roster().watched().filter(|one| !one.is_gone);
    watched
        .map(|one| Earlier {
            device: Arc::clone(&one.name),
            number: tracer.earlier(&one.name),
            since_ns: tracer.begun_ns(),
        })
        .collect()
}

/// The I/Os in flight of a device whose I/Os the kernel does not count.
pub(crate) fn not_counted(device: &str) -> InFlight {
    InFlight {
        device: Some(device.to_owned()),
        wait: Some(NOT_COUNTED.to_owned()),
        ..InFlight::UNKNOWN
    }
}

impl Earlier {
    /// These I/Os, with their age at a moment.
    pub(crate) fn at(&self, now_ns: u64) -> EarlierIos {
        EarlierIos {
            device: self.device.to_string(),
            number: self.number,
            age_ns: now_ns.saturating_sub(self.since_ns),
        }
    }

    /// Adds the earlier I/Os to the device's I/Os in flight that the watch has seen begin. If `has_conditions`,
    /// the question is only about some I/Os, and whether the earlier ones are among them is not known.
    pub(crate) fn add_to(&self, own: InFlight, has_conditions: bool, at_ns: u64) -> InFlight {
        let unknown = |why: &str| InFlight {
            zios: None,
            device: Some(self.device.to_string()),
            wait: Some(why.to_owned()),
            ..own.clone()
        };
        match self.number {
            Some(0) => own,
            None => unknown(NOT_COUNTED),
            Some(_) if has_conditions => unknown(NO_FACTS),
            Some(number) => InFlight {
                zios: own.zios.map(|zios| zios.saturating_add(number)),
                oldest_ns: Some(at_ns.saturating_sub(self.since_ns)),
                device: Some(self.device.to_string()),
                wait: Some(OLDER.to_owned()),
                wait_ns: None,
                rule: None,
            },
        }
    }
}

/// The wait of an I/O that began before the watch.
const OLDER: &str = "or longer: it began before the watch";
/// The reason that a device's I/Os in flight are not known.
const NOT_COUNTED: &str = "the kernel does not count this disk's I/Os: its queue/iostats is 0";
/// The reason that the I/Os in flight that meet a question's conditions are not known.
const NO_FACTS: &str = "of I/Os that began before the watch, only the number is known";

#[cfg(test)]
mod tests {
    use super::*;

    fn earlier(number: Option<u64>) -> Earlier {
        Earlier {
            device: "vda".into(),
            number,
            since_ns: 1_000,
        }
    }

    fn own() -> InFlight {
        InFlight {
            zios: Some(2),
            oldest_ns: Some(7),
            device: Some("vda".to_owned()),
            ..InFlight::default()
        }
    }

    #[test]
    fn an_io_from_before_the_watch_is_in_flight_and_the_oldest() {
        let all = earlier(Some(3)).add_to(own(), false, 4_000);
        assert_eq!((all.zios, all.oldest_ns), (Some(5), Some(3_000)));
        let text =
            "In flight: 5, the oldest for 0.000 s on vda (or longer: it began before the watch).";
        assert_eq!(all.to_string(), text);
        assert_eq!(earlier(Some(0)).add_to(own(), true, 4_000), own());
    }

    #[test]
    fn what_is_not_known_is_null_with_the_reason() {
        for (number, has_conditions, why) in [(None, false, NOT_COUNTED), (Some(1), true, NO_FACTS)]
        {
            let unknown = earlier(number).add_to(own(), has_conditions, 4_000);
            assert_eq!((unknown.zios, unknown.wait.as_deref()), (None, Some(why)));
            let text = format!("In flight on vda: not known ({why}).");
            assert_eq!(unknown.to_string(), text);
        }
    }
}
