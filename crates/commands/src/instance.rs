//! Runs disks with their API: the common part of `serve` and `run`.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use dashpot_api::random_number;
use dashpot_cli::{LabArgs, SpinWhen};
use dashpot_daemon::http::{Access, HandoverListener, Hosts, HttpListener, Manners, router};
use dashpot_daemon::metrics::{self, DaemonMetrics};
use dashpot_daemon::{Collector, Daemon};
use dashpot_engine::Duration;
use dashpot_export::store::OpenDevices;
use dashpot_export::{Handle, Server, ServerConfig, Spin, StartError};
use dashpot_lab::Lab;
use dashpot_rules::{Address, Injection, format_size};
use serde::Serialize;
use signal_hook::consts::SIGXFSZ;
use tokio::task::{JoinHandle, spawn_blocking};

/// How long held and suspended zios may take to end by themselves at shutdown.
const GRACE: Duration = Duration::from_secs(5);

/// The default size of the memory for finished zios, in bytes.
const DEFAULT_EVENTS: u64 = 64 << 20;

/// The maximum number of shards that dashpot starts by default. No measurement has shown that more threads
/// help.
const SHARDS_MAX: usize = 2;

/// The disks that this process serves.
pub(crate) struct Instance {
    server: Server,
    daemon: Arc<Daemon>,
    exports: Vec<Export>,
}

/// When the rules of a lab are armed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arms {
    /// Before the first client is let in.
    First,
    /// By [`Running::arm`].
    Later,
}

/// Disks with a running API. End with [`Running::stop`], because dropping this value leaves sockets behind,
/// and stores unsynced.
#[must_use]
pub(crate) struct Running {
    instance: Instance,
    answering: Vec<JoinHandle<()>>,
}

/// A disk or a volume, and the addresses for its clients.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Export {
    pub(crate) name: String,
    /// The first URI of the disk.
    pub(crate) uri: String,
    pub(crate) uris: Vec<String>,
}

/// Where NBD clients connect: addresses, and sockets that this process was given.
#[derive(Default)]
pub(crate) struct Listening {
    pub(crate) addresses: Vec<Address>,
    pub(crate) handed: Vec<Arc<OwnedFd>>,
}

/// The listeners, before they answer.
pub(crate) struct Listeners {
    pub(crate) api: HttpListener,
    pub(crate) metrics: Option<(HttpListener, Option<Hosts>)>,
    pub(crate) handover: HandoverListener,
}

impl Instance {
    /// Serves the disks of a lab.
    pub(crate) async fn start(
        lab: &Lab,
        listen: Listening,
        args: &LabArgs,
        devices: OpenDevices,
        arms: Arms,
    ) -> anyhow::Result<Instance> {
        survive_full_files()?;
        let config = ServerConfig {
            shards: lab.shards.unwrap_or_else(default_shards),
            // A random seed is different each time, so that no test comes to rely on it.
            seed: args.seed.map_or_else(random_number, Ok)?,
            disks: lab.disks.iter().map(|disk| disk.config.clone()).collect(),
            pools: lab.pools.clone(),
            volumes: lab.volumes.clone(),
            listen: listen.addresses,
            handed: listen.handed,
            overcommit: args.overcommit,
            spin: if args.spin == SpinWhen::Auto {
                Spin::Auto
            } else {
                Spin::Never
            },
        };
        let mut server = Server::start(&config, &devices).map_err(explain)?;
        let collector = collector(&mut server, lab)?;
        let handle = server.handle();
        let names = handle
            .exports()
            .map(|name| Export::of(name, server.addresses()));
        let exports: Vec<Export> = names.collect();
        let uris = exports.iter().map(|export| export.uris.clone()).collect();
        let daemon = Arc::new(Daemon::new(
            server.handle(),
            uris,
            lab_rules(lab),
            collector,
        ));
        let instance = Instance {
            server,
            daemon,
            exports,
        };
        match instance.arm_and_open(arms).await {
            Ok(()) => Ok(instance),
            // The error of the start says more than that of the stop.
            Err(error) => {
                let _ = instance.stop();
                Err(error)
            }
        }
    }

    async fn arm_and_open(&self, arms: Arms) -> anyhow::Result<()> {
        if arms == Arms::First {
            self.daemon.arm_lab().await?;
        }
        self.server.open().map_err(explain)
    }

    /// Begins to answer requests to the API and requests for the metrics.
    pub(crate) fn answer(self, listeners: Listeners, access: Option<Arc<Access>>) -> Running {
        let Listeners {
            api,
            metrics,
            handover,
        } = listeners;
        let manners = match access {
            Some(_) => Manners::OneRequestUntilKnown,
            None => Manners::Trusted,
        };
        let router = router(Arc::clone(&self.daemon), access);
        let mut answering = vec![
            tokio::spawn(api.serve(router, manners)),
            tokio::spawn(handover.serve(Arc::clone(&self.daemon))),
            tokio::spawn(clear_lapsed(Arc::clone(&self.daemon))),
        ];
        if let Some((metrics, hosts)) = metrics {
            let router = metrics::router(DaemonMetrics(Arc::clone(&self.daemon)), hosts);
            answering.push(tokio::spawn(metrics.serve(router, Manners::OneRequest)));
        }
        Running {
            answering,
            instance: self,
        }
    }

    /// Drains the disks. Blocks until they are drained.
    fn stop(self) -> anyhow::Result<()> {
        Ok(self.server.shutdown(GRACE)?)
    }
}

impl Running {
    pub(crate) fn exports(&self) -> &[Export] {
        &self.instance.exports
    }

    /// Lets callers of the API end this process from now on. The future is ready when a caller asks for the end.
    pub(crate) fn asked_to_end(&self) -> impl Future<Output = ()> {
        self.instance.daemon.asked_to_end()
    }

    /// Arms the rules of the lab.
    pub(crate) async fn arm(&self) -> anyhow::Result<()> {
        Ok(self.instance.daemon.arm_lab().await?)
    }

    /// A handle through which callers reach the shards.
    pub(crate) fn handle(&self) -> Handle {
        self.instance.server.handle()
    }

    /// Drains the disks. The grace period of held zios ends early when `hurry` completes. Fails if
    /// acknowledged writes may be lost.
    pub(crate) async fn stop(self, hurry: impl Future) -> anyhow::Result<()> {
        // Shards that drain accept no commands, so end the listeners first. The end of a task closes its
        // listener.
        for answering in self.answering {
            answering.abort();
            let _ = answering.await;
        }
        let instance = self.instance;
        let handle = instance.server.handle();
        let mut stopped = spawn_blocking(move || instance.stop());
        tokio::select! {
            ended = &mut stopped => ended?,
            _ = hurry => {
                handle.hurry();
                stopped.await?
            }
        }
    }
}

impl Export {
    fn of(name: &str, addresses: &[Address]) -> Export {
        let uris: Vec<String> = addresses.iter().map(|at| nbd_uri(at, name)).collect();
        Export {
            name: name.to_owned(),
            uri: uris.first().cloned().unwrap_or_default(),
            uris,
        }
    }
}

/// Adds the name of the option to an error. The text of the error already contains its sources.
fn explain(error: StartError) -> anyhow::Error {
    match error {
        StartError::Listen(error) => anyhow!("--nbd {error}"),
        StartError::Store(_) | StartError::Pool(_) | StartError::Thread(_) => anyhow!("{error}"),
    }
}

/// Catches SIGXFSZ, so that a write beyond the limit on file sizes (`ulimit -f`) fails by itself, instead of
/// ending the process with all disks. The signal is caught rather than ignored, because the commands that
/// dashpot starts would inherit an ignored signal.
fn survive_full_files() -> anyhow::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    Ok(())
}

/// Starts the collector of finished zios.
fn collector(server: &mut Server, lab: &Lab) -> anyhow::Result<Collector> {
    let reader = server
        .events()
        .context("a collector already reads the events")?;
    let bytes = lab.events.unwrap_or(DEFAULT_EVENTS);
    let started = Collector::start(reader, lab.disks.len() + lab.volumes.len(), bytes);
    started.with_context(|| {
        let size = format_size(bytes);
        format!(
            "--events {size}: no memory or no thread to keep I/Os; give less, or 0 to keep none"
        )
    })
}

/// Clears rules whose leases lapse.
async fn clear_lapsed(daemon: Arc<Daemon>) {
    daemon.clear_lapsed().await;
}

/// The rules of a lab, with the indices of their disks.
fn lab_rules(lab: &Lab) -> Vec<(usize, Injection)> {
    let with_index = lab.disks.iter().enumerate();
    let rules = with_index.flat_map(|(index, disk)| {
        let injections = disk.injections.iter().cloned();
        injections.map(move |injection| (index, injection))
    });
    rules.collect()
}

/// The address of an export, in the form of the NBD URI specification.
fn nbd_uri(address: &Address, name: &str) -> String {
    match address {
        Address::Unix(path) => {
            let path = percent_encoded(&path.to_string_lossy());
            format!("nbd+unix:///{name}?socket={path}")
        }
        Address::Tcp(socket) if socket.ip().is_unspecified() => {
            format!("nbd://localhost:{}/{name}", socket.port())
        }
        Address::Tcp(socket) => format!("nbd://{socket}/{name}"),
    }
}

fn percent_encoded(path: &str) -> String {
    let segments: Vec<String> = path.split('/').map(dashpot_rules::segment).collect();
    segments.join("/")
}

fn default_shards() -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    cpus.min(SHARDS_MAX)
}

#[cfg(test)]
mod tests {
    use dashpot_rules::Address;

    use super::nbd_uri;

    #[test]
    fn uris_are_those_that_clients_understand() {
        let unix = Address::Unix("/run/a b/nbd.sock".into());
        assert_eq!(
            nbd_uri(&unix, "tank/foo"),
            "nbd+unix:///tank/foo?socket=/run/a%20b/nbd.sock"
        );
        for (address, uri) in [
            ("127.0.0.1:10809", "nbd://127.0.0.1:10809/d0"),
            ("[::1]:7", "nbd://[::1]:7/d0"),
            ("0.0.0.0:7", "nbd://localhost:7/d0"),
        ] {
            assert_eq!(nbd_uri(&Address::Tcp(address.parse().unwrap()), "d0"), uri);
        }
    }
}
