//! `doctor`: examines this host.

use dashpot_api::Client;

use super::output::{print, print_json};
use super::screen::room;
use crate::cli::DoctorArgs;
use crate::doctor::Diagnosis;

pub(crate) fn doctor(daemon: Option<&Client>, args: &DoctorArgs) -> anyhow::Result<()> {
    let status = daemon.and_then(|daemon| daemon.status(0).ok());
    let diagnosis = Diagnosis::examine(status);
    match args.json {
        true => print_json(&diagnosis),
        false => print(&diagnosis.text(room(false))),
    }
}
