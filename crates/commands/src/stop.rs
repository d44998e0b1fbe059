//! `stop`: ends a daemon.

use anyhow::bail;
use dashpot_api::{Client, ClientError};
use dashpot_attach::left_at;
use dashpot_cli::StopArgs;
use dashpot_export::complain;
use dashpot_output::{print, print_json};

/// Ends the daemon, waits for its end, and prints what has ended.
pub fn stop(client: &Client, args: &StopArgs) -> anyhow::Result<()> {
    let stopped = match client.stop() {
        Err(ClientError::NoDaemon { address, error }) if !is_denied(&error) => bail!(
            "no daemon at {address} ({error}): nothing was stopped; --api names another daemon"
        ),
        stopped => stopped?,
    };
    if args.json {
        print_json(&stopped)?;
    } else {
        let served = stopped.exports.join(", ");
        print(&format!(
            "stopped process {}, which served {served}\n",
            stopped.pid
        ))?;
    }
    for sentence in left_at(&client.address(), stopped.pid, &[]) {
        complain(format_args!("dashpot: {sentence}"));
    }
    Ok(())
}

fn is_denied(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied
}
