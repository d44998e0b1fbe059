//! `serve`: disks until told to stop.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use dashpot_export::Address;
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::instance::{Export, Instance};
use super::output::print;
use super::private::PrivateDir;
use crate::api::{
    Access, ApiListener, TokenFile, default_socket, make_private_dir, random_word, router,
    runtime_dir,
};
use crate::cli::ServeArgs;
use crate::lab::Lab;
use crate::spec::Listen;

/// Random letters of a token.
const TOKEN_LETTERS: usize = 32;

/// Serves until SIGINT or SIGTERM.
pub(crate) fn serve(args: &ServeArgs, api: Option<&Listen>) -> anyhow::Result<ExitCode> {
    let lab = Lab::from_args(&args.lab)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve_lab(args, &lab, api.or(lab.api.as_ref())))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve_lab(args: &ServeArgs, lab: &Lab, api: Option<&Listen>) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let mut places = Places::default();
    // Before the disks: if a daemon is there already, its stores must not be touched.
    let api = ApiListener::bind(&places.api(api)?).await?;
    let nbd = if args.nbd.is_empty() {
        &lab.nbd
    } else {
        &args.nbd
    };
    let instance = Instance::start(lab, places.nbd(nbd)?, &args.lab).await?;
    let door = Door::new(&api, args.allow_host.clone())?;
    let router = router(Arc::clone(&instance.daemon), door.access.clone());
    let answering = tokio::spawn(api.serve(router));
    let ready = ReadyFile::new(args.ready_file.as_deref(), &door.url, &instance.exports)?;
    print(&announcement(&door.url, &instance.exports))?;
    signals.next().await;
    // Shards that drain take no commands. The listener, and with it the socket, goes with the task.
    answering.abort();
    let _ = answering.await;
    let hurry = instance.hurry();
    let mut stopped = tokio::task::spawn_blocking(move || instance.stop());
    tokio::select! {
        _ = &mut stopped => {}
        () = signals.next() => {
            hurry();
            let _ = stopped.await;
        }
    }
    drop(ready);
    Ok(())
}

fn announcement(api: &str, exports: &[Export]) -> String {
    let lines = exports.iter().flat_map(|export| {
        let uris = export.uris.iter();
        uris.map(move |uri| format!("{}  {uri}\n", export.name))
    });
    format!("{}API  {api}\n", lines.collect::<String>())
}

/// Where sockets are, and the directories that exist for them alone.
#[derive(Default)]
struct Places {
    private: Option<PrivateDir>,
}

impl Places {
    fn api(&mut self, api: Option<&Listen>) -> anyhow::Result<Address> {
        match api {
            Some(Listen::At(address)) => Ok(address.clone()),
            Some(Listen::Private) => Ok(Address::Unix(self.private()?.join("api.sock"))),
            None => {
                make_private_dir(&runtime_dir())?;
                Ok(Address::Unix(default_socket()))
            }
        }
    }

    fn nbd(&mut self, nbd: &[Listen]) -> anyhow::Result<Vec<Address>> {
        if nbd.is_empty() {
            make_private_dir(&runtime_dir())?;
            return Ok(vec![Address::Unix(runtime_dir().join("nbd.sock"))]);
        }
        let place = |listen: &Listen| match listen {
            Listen::At(address) => Ok(address.clone()),
            Listen::Private => Ok(Address::Unix(self.private()?.join("nbd.sock"))),
        };
        nbd.iter().map(place).collect()
    }

    fn private(&mut self) -> anyhow::Result<&Path> {
        if self.private.is_none() {
            self.private = Some(PrivateDir::new()?);
        }
        self.private
            .as_ref()
            .map(PrivateDir::path)
            .context("no private directory")
    }
}

/// How the API is reached and what for that must be brought along.
struct Door {
    url: String,
    access: Option<Arc<Access>>,
    _token: Option<TokenFile>,
}

impl Door {
    fn new(api: &ApiListener, allowed_hosts: Vec<String>) -> anyhow::Result<Door> {
        let Address::Tcp(socket) = api.address() else {
            return Ok(Door {
                url: api.address().to_string(),
                access: None,
                _token: None,
            });
        };
        let token = random_word(TOKEN_LETTERS)?;
        let file = TokenFile::write(&token)?;
        Ok(Door {
            url: format!("http://{}/?token={token}", reachable(*socket)),
            access: Some(Arc::new(Access::new(token, allowed_hosts))),
            _token: Some(file),
        })
    }
}

/// Where a socket is reached that listens at every address.
fn reachable(socket: SocketAddr) -> String {
    if socket.ip().is_unspecified() {
        return format!("localhost:{}", socket.port());
    }
    socket.to_string()
}

/// Says that clients can connect; it goes when the daemon does.
struct ReadyFile(Option<PathBuf>);

#[derive(Serialize)]
struct Ready<'a> {
    pid: u32,
    api: &'a str,
    exports: &'a [Export],
}

impl ReadyFile {
    fn new(path: Option<&Path>, api: &str, exports: &[Export]) -> anyhow::Result<ReadyFile> {
        let Some(path) = path else {
            return Ok(ReadyFile(None));
        };
        let ready = Ready {
            pid: std::process::id(),
            api,
            exports,
        };
        // Whoever sees the file sees all of it: it is written under another name.
        let draft = path.with_extension("draft");
        let refused = || format!("--ready-file {}: cannot be written", path.display());
        let mut file = fs::File::create(&draft).with_context(refused)?;
        file.write_all(&serde_json::to_vec_pretty(&ready)?)?;
        fs::rename(&draft, path).with_context(refused)?;
        Ok(ReadyFile(Some(path.to_owned())))
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // It may have been removed by hand, which is what is wanted.
            let _ = fs::remove_file(path);
        }
    }
}

/// What ends a daemon.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
