//! `serve`: serves disks until it is told to stop.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use dashpot_api::{default_socket, recording_link, runtime_dir, whole_address};
use dashpot_attach::left_at;
use dashpot_cli::reports::DeviceArgs;
use dashpot_cli::{BackgroundArgs, ServeArgs};
use dashpot_daemon::http::make_private_dir;
use dashpot_export::complain;
use dashpot_export::store::OpenDevices;
use dashpot_lab::Lab;
use dashpot_output::print;
use dashpot_rules::{Address, ApiAddress, DiskConfig, Listen, shell_word};
use dashpot_sources::Target;
use tokio::task::spawn_blocking;

use crate::devices::{Attacher, Devices, Wanted, lab_beside, open_devices};
use crate::endpoint::{Endpoint, place_to_listen};
use crate::instance::{Arms, Export, Instance, Listening, Running};
use crate::private::PrivateDir;
use crate::ready::ReadyFile;
use crate::record::Background;
use crate::service::Service;
use crate::signals::{ENDS, Signals, USERS};
use crate::supervisor::{handed_sockets, say_stopping};

/// Serves disks until a signal comes.
pub fn serve(args: &ServeArgs, api: Option<&ApiAddress>) -> anyhow::Result<ExitCode> {
    // Take the sockets before this process opens other descriptors.
    let handed = handed_sockets()?;
    let api = api.map(|api| place_to_listen(api, "--api or DASHPOT_API"));
    let api = api.transpose()?;
    let wanted = args.attach.disks.clone().map(|disks| Wanted {
        disks,
        linked: true,
        mount: None,
    });
    // Open the devices while this process is still root, because the user may not have the right to open
    // them.
    let opened = lab_beside(&args.attach, &args.lab)
        .and_then(|lab| {
            check_served(&lab)?;
            Ok(lab)
        })
        .and_then(|lab| Ok((open_devices(wanted.as_ref(), &lab)?, lab)));
    // From here on, this process is no longer root if `sudo` has started it.
    let attacher = wanted.map(Attacher::start).transpose()?;
    // Claim the ready file first, because a script that waits for this daemon must not read the ready file of
    // the last daemon.
    let ready = Service::claim(&args.service)?;
    let (devices, lab) = opened?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve_lab(
        args,
        &lab,
        api.or(lab.api.as_ref()),
        handed,
        ready,
        attacher,
        devices,
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses disks that only `run` can serve.
fn check_served(lab: &Lab) -> anyhow::Result<()> {
    if let Some(DiskConfig { name, store, .. }) = lab.program_disk() {
        bail!(
            "-d {name}={store}: its I/Os are the calls of a program, which dashpot must start itself: \
             dashpot run -d {} -- CMD",
            shell_word(&format!("{name}={store}"))
        );
    }
    Ok(())
}

async fn serve_lab(
    args: &ServeArgs,
    lab: &Lab,
    api: Option<&Listen>,
    handed: Vec<Arc<OwnedFd>>,
    ready: Option<ReadyFile>,
    attacher: Option<Attacher>,
    devices: OpenDevices,
) -> anyhow::Result<()> {
    let mut signals = Signals::catch(ENDS)?.with_parent(args.service.exit_with_parent)?;
    // A signal that was sent by mistake must not end disks that other users need.
    let _ignored = Signals::catch(USERS)?;
    let mut places = Places::default();
    let is_handed = !handed.is_empty();
    // If a client started this process and handed it sockets, another daemon may run: use a private API.
    let api = api.or(is_handed.then_some(&Listen::Private));
    // Bind first: if another daemon already runs, this process must not touch its stores.
    let metrics = args.service.metrics.as_ref().or(lab.metrics.as_ref());
    let (api, metrics) = (places.api(api)?, places.metrics(metrics)?);
    let bound = Service::bind(&args.service, &api, metrics.as_ref(), ready).await?;
    let (mut service, listeners) = bound;
    let nbd = Some(&args.nbd).filter(|nbd| !nbd.is_empty());
    let nbd = nbd.unwrap_or(&lab.nbd);
    let listening = places.nbd(nbd, handed)?;
    let instance = Instance::start(lab, listening, &args.lab, devices, Arms::First).await?;
    let address = service.api.clone();
    let running = instance.answer(listeners, service.door.access.clone());
    let asked = running.asked_to_end();
    // Even after an error, stop the instance: the stop syncs the stores and removes the sockets.
    let served = async {
        let recording = record(&args.service.recording, &service.api).await?;
        let announce = |devices: Option<&Devices>| {
            service.tell_ready(running.exports())?;
            // If a client has handed sockets to this process, stdout belongs to that client.
            if is_handed {
                Ok(())
            } else {
                announce(&service, running.exports(), devices)
            }
        };
        let served = attached(attacher, &address, &running, &mut signals, asked, announce).await;
        end_recording(recording).await?;
        served
    };
    let served = served.await;
    say_stopping();
    served.and(running.stop(signals.next()).await)
}

/// Attaches disks, if the user asks for it, and detaches them when a signal comes, or a caller of the API has
/// `asked` for the end.
async fn attached(
    attacher: Option<Attacher>,
    address: &Address,
    running: &Running,
    signals: &mut Signals,
    asked: impl Future<Output = ()>,
    announce: impl FnOnce(Option<&Devices>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let devices = match attacher {
        Some(attacher) => Some(attacher.attach(address, running.exports(), signals).await?),
        None => None,
    };
    let announced = announce(devices.as_ref());
    if announced.is_ok() {
        tokio::select! {
            _ = signals.next() => {}
            () = asked => {}
        }
        let own = devices.as_ref().map(Devices::nodes).unwrap_or_default();
        for sentence in left_at(
            &whole_address(address).to_string(),
            std::process::id(),
            &own,
        ) {
            complain(format_args!("dashpot: {sentence}"));
        }
    }
    if let Some(devices) = devices {
        devices.detach().await;
    }
    announced
}

/// Begins to record the disks, if the user asks for it. The thread that records is a client of the API, so
/// the API must answer in the meantime.
pub(crate) async fn record(
    args: &BackgroundArgs,
    address: &Address,
) -> anyhow::Result<Option<Background>> {
    let Some((root, kept)) = Background::asked(args) else {
        return Ok(None);
    };
    let api = ApiAddress {
        at: Listen::At(address.clone()),
        token: None,
    };
    let find = move || Target::find(Some(&api), &DeviceArgs::default());
    let (root, kept, link) = (root.to_owned(), kept.clone(), recording_link(address));
    let begun = spawn_blocking(move || Background::start(&root, &kept, link, find));
    begun.await?.map(Some)
}

/// Ends a recording. While it ends, the API must answer the thread that records.
pub(crate) async fn end_recording(recording: Option<Background>) -> anyhow::Result<()> {
    Ok(spawn_blocking(move || drop(recording)).await?)
}

fn announce(
    service: &Service,
    exports: &[Export],
    devices: Option<&Devices>,
) -> anyhow::Result<()> {
    let devices = devices.map(Devices::lines).unwrap_or_default();
    print(&(announcement(service, exports) + &devices))
}

fn announcement(service: &Service, exports: &[Export]) -> String {
    let lines = exports.iter().flat_map(|export| {
        let uris = export.uris.iter();
        uris.map(move |uri| format!("{}  {uri}\n", export.name))
    });
    let metrics = service.metrics.as_ref();
    let metrics = metrics.map_or(String::new(), |url| format!("metrics  {url}\n"));
    let Endpoint { shown, page, .. } = &service.door;
    format!(
        "{}API  {shown}\npage  {page}\n{metrics}",
        lines.collect::<String>()
    )
}

/// Chooses the paths of sockets. Keeps the private directory of the sockets for which the user names no path.
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

    fn metrics(&mut self, metrics: Option<&Listen>) -> anyhow::Result<Option<Address>> {
        Ok(match metrics {
            Some(Listen::At(address)) => Some(address.clone()),
            Some(Listen::Private) => Some(Address::Unix(self.private()?.join("metrics.sock"))),
            None => None,
        })
    }

    /// The sockets that were handed over, and the addresses that the user wants; if there are neither, the
    /// default address.
    fn nbd(&mut self, nbd: &[Listen], handed: Vec<Arc<OwnedFd>>) -> anyhow::Result<Listening> {
        if nbd.is_empty() && handed.is_empty() {
            make_private_dir(&runtime_dir())?;
            let addresses = vec![Address::Unix(runtime_dir().join("nbd.sock"))];
            return Ok(Listening { addresses, handed });
        }
        let place = |listen: &Listen| match listen {
            Listen::At(address) => Ok(address.clone()),
            Listen::Private => Ok(Address::Unix(self.private()?.join("nbd.sock"))),
        };
        let addresses = nbd.iter().map(place).collect::<anyhow::Result<_>>()?;
        Ok(Listening { addresses, handed })
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
