//! The API and the metrics of served disks, for `serve` and for `run`, and the file that says that clients
//! can connect.

use dashpot_cli::ServiceArgs;
use dashpot_daemon::http::{HandoverListener, HttpListener};
use dashpot_rules::Address;

use crate::endpoint::{Endpoint, metrics_url};
use crate::instance::{Export, Listeners};
use crate::ready::ReadyFile;
use crate::supervisor::say_ready;

/// The API, the metrics and the ready file of served disks.
pub(crate) struct Service {
    pub(crate) door: Endpoint,
    /// Where the API listens.
    pub(crate) api: Address,
    /// The address of the metrics, if the user wants them.
    pub(crate) metrics: Option<String>,
    ready: Option<ReadyFile>,
}

impl Service {
    /// Claims the ready file that the user names. Call this early: a script that waits for these disks must not
    /// read the file of others.
    pub(crate) fn claim(args: &ServiceArgs) -> anyhow::Result<Option<ReadyFile>> {
        args.ready_file.as_deref().map(ReadyFile::claim).transpose()
    }

    /// Binds the listeners.
    pub(crate) async fn bind(
        args: &ServiceArgs,
        api: &Address,
        metrics: Option<&Address>,
        ready: Option<ReadyFile>,
    ) -> anyhow::Result<(Service, Listeners)> {
        let api = HttpListener::bind("--api", api).await?;
        let metrics = match metrics {
            Some(address) => Some(HttpListener::bind("--metrics", address).await?),
            None => None,
        };
        let service = Service {
            door: Endpoint::new(&api, args.allow_host.clone(), args.token_file.as_deref())?,
            api: api.address().clone(),
            metrics: metrics.as_ref().map(metrics_url),
            ready,
        };
        let listeners = Listeners {
            handover: HandoverListener::bind(api.address())?,
            api,
            metrics: metrics.map(|metrics| {
                let hosts = metrics.hosts(&args.allow_host);
                (metrics, hosts)
            }),
        };
        Ok((service, listeners))
    }

    /// Tells the programs that wait for the disks that clients can connect.
    pub(crate) fn tell_ready(&mut self, exports: &[Export]) -> anyhow::Result<()> {
        if let Some(ready) = &mut self.ready {
            ready.publish(&self.door.url, self.metrics.as_deref(), exports)?;
        }
        say_ready();
        Ok(())
    }
}
