//! How long a simulated disk takes: the keys of `[disk.NAME]` that only simulations read.

use dashpot_engine::Duration;
use dashpot_engine::inject::Service;
use dashpot_sim::scenario::DiskModel;

use super::section::Section;
use crate::spec::{ParseError, parse_bandwidth, parse_service};

pub(super) const MODEL_KEYS: [&str; 6] = [
    "service",
    "rate",
    "lanes",
    "bandwidth",
    "flush",
    "rotational",
];

/// Reads how long a disk takes, and whether it has a head that moves.
pub(super) fn read_model(section: &Section<'_>) -> Result<(DiskModel, bool), ParseError> {
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
    Ok((model, section.flag("rotational")?.unwrap_or(false)))
}

fn parse_lanes(text: &str) -> Result<u32, ParseError> {
    text.parse().ok().filter(|lanes| *lanes > 0).ok_or_else(|| {
        ParseError::new(format!(
            "'{text}' lanes are not possible: give 1 or more, or leave the key out for no queueing"
        ))
    })
}

const NO_TIME: Service = Service::Constant(Duration::ZERO);
