//! The model of how long a simulated disk takes for its I/Os: the keys of `[disk.NAME]` that only simulations
//! read.

use dashpot_engine::Duration;
use dashpot_engine::inject::Service;
use dashpot_rules::{ParseError, parse_bandwidth, parse_service};
use dashpot_sim::scenario::DiskModel;

use crate::key::Key;
use crate::section::Section;

pub(crate) const MODEL_KEYS: [Key; 5] = [
    Key {
        name: "service",
        kind: "service time",
        example: "\"lognormal=2ms..20ms\"",
        default: "none: it takes no time",
        meaning: "How long an I/O takes in its lane, whatever its size. Forms: see Values.",
    },
    Key {
        name: "rate",
        kind: "rate of bytes",
        example: "\"200M\"",
        default: "none: bytes take no time",
        meaning: "Bytes per second of one lane: an I/O takes its size divided by this, in addition to `service`.",
    },
    Key {
        name: "lanes",
        kind: "number, 1 or more",
        example: "4",
        default: "none: any number at a time",
        meaning: "How many I/Os are served at a time; the others queue. Needs `service` or `rate`.",
    },
    Key {
        name: "bandwidth",
        kind: "rate of bytes",
        example: "\"100M\"",
        default: "none: it takes no time",
        meaning: "Bytes per second of a bus before the lanes: it carries the bytes of one read or write at a time.",
    },
    Key {
        name: "flush",
        kind: "service time",
        example: "\"5ms\"",
        default: "none: it takes no time",
        meaning: "How long a flush takes; it uses no lane.",
    },
];

/// Reads the model of how long a disk takes for its I/Os.
pub(crate) fn read_model(section: &Section<'_>) -> Result<DiskModel, ParseError> {
    let service = |word: &str| parse_service(word).map(|(service, _)| service);
    let model = DiskModel {
        bandwidth: section.value("bandwidth", parse_bandwidth)?,
        lanes: section.value("lanes", parse_lanes)?,
        service: section.value("service", service)?,
        rate: section.value("rate", parse_bandwidth)?,
        flush: section.value("flush", service)?,
    };
    let takes_time =
        model.rate.is_some() || (model.service.as_ref()).is_some_and(|service| *service != NO_TIME);
    if model.lanes.is_some() && !takes_time {
        return section.refuse(
            "lanes",
            "nothing takes time in a lane; add service = \"5ms\" or rate = \"100M\"",
        );
    }
    Ok(model)
}

fn parse_lanes(text: &str) -> Result<u32, ParseError> {
    text.parse().ok().filter(|lanes| *lanes > 0).ok_or_else(|| {
        ParseError::new(format!(
            "'{text}' lanes are not possible: give 1 or more, or leave the key out for no queueing"
        ))
    })
}

const NO_TIME: Service = Service::Constant(Duration::ZERO);
