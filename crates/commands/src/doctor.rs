//! `doctor`: examines this host.

use dashpot_api::Client;
use dashpot_cli::DoctorArgs;
use dashpot_doctor::Diagnosis;
use dashpot_output::screen::room;
use dashpot_output::{print, print_json};

/// Examines this host, and prints what it allows. `daemon` is the running daemon, if one runs.
pub fn doctor(daemon: Option<&Client>, args: &DoctorArgs) -> anyhow::Result<()> {
    let status = daemon.and_then(|daemon| daemon.status(0).ok());
    let diagnosis = Diagnosis::examine(status);
    if args.json {
        print_json(&diagnosis)
    } else {
        print(&diagnosis.text(room(false)))
    }
}
