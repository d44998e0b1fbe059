//! `run`: serves disks while a command runs.

use std::collections::HashMap;
use std::future::pending;
use std::process::ExitCode;

use anyhow::bail;
use dashpot_api::Client;
use dashpot_cli::{OnLoss, RunArgs, UringWord};
use dashpot_engine::inject::Effect;
use dashpot_export::store::OpenDevices;
use dashpot_export::{Uring, complain, reclaim};
use dashpot_lab::Lab;
use dashpot_rules::{Address, ApiAddress, Listen, shell_word};
use tokio::task::spawn_blocking;

use crate::check::{Checks, conclude};
use crate::child::{FAILED, Launcher, passed_on, run_with};
use crate::devices::{Attacher, Devices, Wanted, lab_beside, open_devices};
use crate::endpoint::{Endpoint, place_to_listen};
use crate::instance::{Arms, Export, Instance, Listeners, Listening, Running};
use crate::pipeline::{make_directory, ran, report, tell_rules};
use crate::private::PrivateDir;
use crate::program::Program;
use crate::ready::ReadyFile;
use crate::serve::{end_recording, record};
use crate::service::Service;
use crate::signals::Signals;
use crate::variables::{URI, variable};

/// Serves the lab, runs the command, and returns its exit code.
pub fn run(args: &RunArgs, api: Option<&ApiAddress>) -> ExitCode {
    run_command(args, api).unwrap_or_else(|error| {
        complain(format_args!("dashpot: {error:#}"));
        ExitCode::from(FAILED)
    })
}

fn run_command(args: &RunArgs, api: Option<&ApiAddress>) -> anyhow::Result<ExitCode> {
    let early = Launcher::new()?;
    let api = api.map(|api| place_to_listen(api, "--api")).transpose()?;
    let lab = lab_beside(&args.attach, &args.lab)?;
    check_variables(&lab)?;
    check_of_program(args, &lab)?;
    let wanted = wanted(args);
    // Open the devices while this process is still root, because the user may not have the right to open
    // them.
    let devices = open_devices(wanted.as_ref(), &lab)?;
    // From here on, this process is no longer root if `sudo` has started it.
    let attacher = wanted.map(Attacher::start).transpose()?;
    let ready = Service::claim(&args.service)?;
    // The command must not inherit the mark of an I/O flusher. If this process has the mark, the early
    // thread starts the command, because it does not have the mark. Otherwise a new thread starts the
    // command: to start a command, a thread maps memory, and for that it may need the right to lock memory.
    // If this process has kept that right, a new thread has it, too, but the early thread has lost it.
    let launcher = if reclaim::in_force().io_flusher {
        early
    } else {
        Launcher::new()?
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve_command(
        args, &lab, api, ready, devices, attacher, &launcher,
    ))
}

async fn serve_command(
    args: &RunArgs,
    lab: &Lab,
    api: Option<&Listen>,
    ready: Option<ReadyFile>,
    devices: OpenDevices,
    attacher: Option<Attacher>,
    launcher: &Launcher,
) -> anyhow::Result<ExitCode> {
    // Catch signals before this process makes anything that a signal could leave behind.
    let mut signals = passed_on()?.with_parent(args.service.exit_with_parent)?;
    let sockets = PrivateDir::new()?;
    let nbd = Address::Unix(sockets.path().join("nbd.sock"));
    let (mut service, listeners) = bind(args, lab, api, &sockets, ready).await?;
    say_page(&service.door);
    let listening = Listening {
        addresses: vec![nbd],
        ..Listening::default()
    };
    let instance = Instance::start(lab, listening, &args.lab, devices, Arms::Later).await?;
    say_what_may_hang(lab, &service.api);
    let running = instance.answer(listeners, service.door.access.clone());
    let api = service.api.clone();
    let used = async {
        let devices = attach(attacher, &api, running.exports(), &mut signals).await?;
        let mut variables = variables(&service.door.url, running.exports());
        variables.extend(devices.iter().flat_map(Devices::variables));
        let ended = async {
            // The rules are for the command. Attaching a disk, making its file system and mounting that do
            // not meet them.
            running.arm().await?;
            service.tell_ready(running.exports())?;
            let program = program(args, lab, (&sockets, &api), &running)?;
            checked(args, &api, &variables, program, &mut signals, launcher).await
        };
        let ended = ended.await;
        if let Some(devices) = devices {
            devices.detach().await;
        }
        ended
    };
    // The API must answer until the recording has ended, whatever else fails.
    let ended = async {
        let recording = record(&args.service.recording, &api).await?;
        let used = used.await;
        both(used, end_recording(recording).await)
    };
    let ended = ended.await;
    both(ended, running.stop(pending::<()>()).await)
}

/// Binds the listeners of the API and of the metrics.
async fn bind(
    args: &RunArgs,
    lab: &Lab,
    api: Option<&Listen>,
    sockets: &PrivateDir,
    ready: Option<ReadyFile>,
) -> anyhow::Result<(Service, Listeners)> {
    let place = |listen: &Listen, file: &str| match listen {
        Listen::At(address) => address.clone(),
        Listen::Private => Address::Unix(sockets.path().join(file)),
    };
    let api = place(api.unwrap_or(&Listen::Private), "api.sock");
    let metrics = args.service.metrics.as_ref().or(lab.metrics.as_ref());
    let metrics = metrics.map(|listen| place(listen, "metrics.sock"));
    Service::bind(&args.service, &api, metrics.as_ref(), ready).await
}

/// The result of a run. If the command has failed, its status says more than the loss of writes at the end.
fn both(ended: anyhow::Result<ExitCode>, stopped: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    match (ended, stopped) {
        (Ok(ended), Err(lost)) if ended != ExitCode::SUCCESS => {
            complain(format_args!("dashpot: {lost:#}"));
            Ok(ended)
        }
        (ended, stopped) => ended.and_then(|ended| stopped.map(|()| ended)),
    }
}

/// Says at once how a call ends that a rule of the command line hangs: the program shows nothing, and while it
/// waits it gets only a signal that kills it.
fn say_what_may_hang(lab: &Lab, api: &Address) {
    for disk in &lab.disks {
        let mut rules = disk
            .injections
            .iter()
            .flat_map(|injection| &injection.rules);
        let hangs =
            rules.any(|rule| rule.spec.effect == Effect::Hang && rule.spec.when.is_for_ever());
        if hangs && lab.follows_program() {
            let (name, api) = (&disk.config.name, shell_word(&api.to_string()).into_owned());
            complain(format_args!(
                "dashpot: a call that '{name}' hangs ends with 'dashpot clear {name} --release --api {api}', or with the program"
            ));
        }
    }
}

/// The door for the calls of the command, if the lab has a disk that takes them.
fn program(
    args: &RunArgs,
    lab: &Lab,
    (sockets, api): (&PrivateDir, &Address),
    running: &Running,
) -> anyhow::Result<Option<Program>> {
    let at = sockets.path();
    let awaited = || Program::awaited(at, api, running.handle(), on_loss(args), uring(args));
    lab.follows_program().then(awaited).transpose()
}

/// Prints the address of the page on stderr, because stdout belongs to the command.
fn say_page(door: &Endpoint) {
    if door.access.is_some() {
        complain(format_args!("dashpot: page {}", door.page));
    }
}

/// The disks to attach; `None` without `--attach` and `--mount`. The devices get no links: the command finds
/// them in environment variables, and another daemon on this host may have a disk with the same name.
fn wanted(args: &RunArgs) -> Option<Wanted> {
    let disks = args.attach.disks.clone();
    let disks = disks.or_else(|| args.mount.as_ref().map(|_| Vec::new()))?;
    Some(Wanted {
        disks,
        linked: false,
        mount: args.mount.clone(),
    })
}

/// Attaches the disks, if the user asks for it.
async fn attach(
    attacher: Option<Attacher>,
    api: &Address,
    exports: &[Export],
    signals: &mut Signals,
) -> anyhow::Result<Option<Devices>> {
    match attacher {
        Some(attacher) => {
            let attached = attacher.attach(api, exports, signals);
            attached.await.map(Some)
        }
        None => Ok(None),
    }
}

/// Runs the command, says what the rules did, and then checks the expectations of `--check`.
async fn checked(
    args: &RunArgs,
    api: &Address,
    variables: &[(String, String)],
    program: Option<Program>,
    signals: &mut Signals,
    launcher: &Launcher,
) -> anyhow::Result<ExitCode> {
    if args.check.is_empty() && args.report.is_none() {
        let ended = run_program(args, variables, program, signals, launcher).await?;
        let at = api.clone();
        let outcomes = args.outcomes.clone();
        let told = spawn_blocking(move || tell_rules(&Client::at(at, None)?, outcomes.as_deref()));
        return both(Ok(ExitCode::from(ended)), told.await?);
    }
    let (texts, at) = (args.check.clone(), api.clone());
    let before = spawn_blocking(move || {
        let client = Client::at(at, None)?;
        let checks = Checks::parse(&client, &texts, true)??;
        let snapshot = checks.snapshot(&client)?;
        anyhow::Ok((checks, snapshot))
    });
    let (checks, snapshot) = before.await??;
    make_directory(args.report.as_deref())?;
    let ends = run_program(args, variables, program, signals, launcher);
    let ran = ran(&args.command, ends).await?;
    let (at, directory, ended) = (api.clone(), args.report.clone(), ran.exit_code());
    let file = args.outcomes.clone();
    let outcomes = spawn_blocking(move || {
        let client = Client::at(at, None)?;
        let outcomes = checks.judge(&client, Some(&snapshot))?;
        let told = tell_rules(&client, file.as_deref());
        report(&client, directory.as_deref(), &ran, &outcomes)?;
        told.map(|()| outcomes)
    });
    conclude(ended, outcomes.await?, false)
}

async fn run_program(
    args: &RunArgs,
    variables: &[(String, String)],
    program: Option<Program>,
    signals: &mut Signals,
    launcher: &Launcher,
) -> anyhow::Result<u8> {
    let command = &args.command;
    let ended = run_with(command, variables, program.as_ref(), signals, launcher).await;
    if let Some(program) = program {
        program.end().await;
    }
    Ok(ended?)
}

/// The fate of held calls if dashpot is killed. By default, the command is killed, too.
fn on_loss(args: &RunArgs) -> OnLoss {
    args.on_loss.unwrap_or(OnLoss::Kill)
}

/// dashpot counts the io_urings of a program, unless the user wants dashpot to refuse them.
fn uring(args: &RunArgs) -> Uring {
    match args.uring {
        Some(UringWord::Refuse) => Uring::Refuse,
        Some(UringWord::Count) | None => Uring::Count,
    }
}

/// Refuses options about the calls of programs if no disk of the lab receives such calls.
fn check_of_program(args: &RunArgs, lab: &Lab) -> anyhow::Result<()> {
    let given = [
        ("--on-loss", args.on_loss.is_some()),
        ("--uring", args.uring.is_some()),
    ];
    for (option, _) in given.into_iter().filter(|(_, given)| *given) {
        if !lab.follows_program() {
            bail!(
                "{option} is for the calls of -d NAME=path:DIR: add such a disk, or leave it out"
            );
        }
    }
    Ok(())
}

/// Refuses two disks whose names lead to the same environment variable.
fn check_variables(lab: &Lab) -> anyhow::Result<()> {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for disk in &lab.disks {
        let name = disk.config.name.as_str();
        let variable = variable(URI, name);
        if let Some(other) = seen.get(&variable) {
            bail!("disks '{other}' and '{name}' would both be ${variable}: rename one");
        }
        seen.insert(variable, name);
    }
    Ok(())
}

/// The environment variables that tell the command the addresses of its disks and of their API.
fn variables(api: &str, exports: &[Export]) -> Vec<(String, String)> {
    let first = exports.first().map(|export| export.uri.clone());
    let mut variables = vec![
        ("DASHPOT_API".to_owned(), api.to_string()),
        ("DASHPOT_URI".to_owned(), first.unwrap_or_default()),
    ];
    for export in exports {
        variables.push((variable(URI, &export.name), export.uri.clone()));
    }
    variables
}
