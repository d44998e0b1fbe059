//! `top`: the full screen. This file connects the state, which makes the decisions, with the terminal, the
//! clock and the disks.
//!
//! This crate knows no report and no HTTP: its figures come from sources, from the client of the API, or from
//! a simulation.

mod ask;
mod board;
mod daemon;
mod draw;
mod editor;
#[cfg(test)]
mod fixture;
mod frame;
mod history;
mod kernel;
mod link;
mod pools;
mod prompt;
mod said;
mod sim;
mod sort;
mod state;
mod terminal;

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use dashpot_api::Client;
use dashpot_cli::TopArgs;
use dashpot_lab::load_sim_lab;
use dashpot_output::usage;
use dashpot_rules::{ApiAddress, ParseError, Speed};
use dashpot_sources::Target;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

use self::ask::News;
use self::board::Contact;
use self::daemon::Daemon;
use self::draw::Theme;
use self::link::Link;
use self::sim::Sim;
use self::state::{Deed, Origin, State};
use self::terminal::Screen;

/// Shows the full screen until the user ends it, or until what it watches is gone.
///
/// # Errors
///
/// Fails if standard output is no terminal, or if the source cannot be watched.
pub fn top(api: Option<&ApiAddress>, args: &TopArgs) -> anyhow::Result<ExitCode> {
    terminal::check(args.sim.is_some())?;
    let interval = args.interval.map_or(INTERVAL, |interval| {
        Duration::from_nanos(interval.as_nanos())
    });
    let session = match &args.sim {
        Some(lab) => Session::simulate(lab, args.speed.unwrap_or(Speed::ONE), interval)?,
        None => Session::start(Target::find(api, &args.device)?, interval)?,
    };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(session.run())
}

/// Refuses `--api` together with a simulation. The command ignores the address in the environment,
/// which is meant for other commands.
pub fn check_api(api: Option<&ApiAddress>, args: &TopArgs) {
    if args.sim.is_some() && api.is_some() {
        usage(&ParseError::new(
            "--sim simulates by itself, without a daemon: leave --api out",
        ));
    }
}

/// The state of the screen, and its link to the disks.
struct Session {
    state: State,
    theme: Theme,
    link: Link,
    news: UnboundedReceiver<News>,
    /// The time of the last news.
    heard: Instant,
}

/// The state and the link of a session with a daemon. `only` has the names of the devices to show; if it is
/// empty, the session shows all devices.
fn of_daemon(
    client: Client,
    only: Vec<String>,
    interval: Duration,
    tell: UnboundedSender<News>,
) -> anyhow::Result<(State, Link)> {
    let mut state = State::new(Origin::Daemon(client.address()), interval);
    let mut daemon = Daemon::new(client, only);
    state.hear(News::Frame(Box::new(daemon.frame()?)));
    Ok((state, Link::to_daemon(daemon, interval, tell)?))
}

impl Session {
    /// Takes the first frame, so that early errors are printed without a full screen.
    fn start(target: Target, interval: Duration) -> anyhow::Result<Session> {
        let (tell, news) = unbounded_channel();
        let (state, link) = match target {
            Target::Pools { client, .. } => of_daemon(client, Vec::new(), interval, tell)?,
            Target::Daemon {
                client,
                disks,
                volumes,
                named,
            } => {
                let only = named.only(&[disks, volumes].concat()).to_vec();
                of_daemon(client, only, interval, tell)?
            }
            Target::Kernel(devices, named) => {
                let link = Link::to_kernel(devices, named, interval, tell)?;
                (State::new(Origin::Kernel, interval), link)
            }
        };
        Ok(Session::new(state, link, news))
    }

    /// Begins the simulation of a lab.
    fn simulate(lab: &Path, speed: Speed, interval: Duration) -> anyhow::Result<Session> {
        let (tell, news) = unbounded_channel();
        let simulated = load_sim_lab(lab)?;
        let rules = simulated.rules.clone();
        let sim = Sim::new(simulated.begin()?, rules);
        let sim = sim.with_context(|| lab.display().to_string())?;
        let name = lab.file_stem().unwrap_or(lab.as_os_str());
        let source = Origin::Simulation(name.to_string_lossy().into_owned());
        let mut state = State::new(source, interval);
        state.hear(News::Frame(Box::new(sim.glance())));
        let link = Link::to_simulation(sim, speed, interval, tell)?;
        Ok(Session::new(state, link, news))
    }

    fn new(state: State, link: Link, news: UnboundedReceiver<News>) -> Session {
        Session {
            state,
            theme: Theme::new(terminal::has_colour()),
            link,
            news,
            heard: Instant::now(),
        }
    }

    /// Draws and waits for events, until the user quits.
    async fn run(mut self) -> anyhow::Result<ExitCode> {
        let mut ends = Ends::new()?;
        let mut screen = Screen::take()?;
        let mut events = terminal_events()?;
        loop {
            screen
                .terminal
                .draw(|frame| draw::draw(frame, &self.state, self.theme))?;
            let doubt = self.heard + self.state.interval + PATIENCE;
            tokio::select! {
                // Look for a signal first, because a signal may be the reason why the news has ended.
                biased;
                () = ends.recv() => return Ok(ExitCode::SUCCESS),
                news = self.news.recv() => self.hear(news)?,
                event = events.recv() => {
                    let event = event.context("the terminal is gone")?;
                    if self.obey(&event)? {
                        return Ok(ExitCode::SUCCESS);
                    }
                }
                () = sleep_until(doubt.max(Instant::now() + DOUBT_EVERY)) => {
                    self.state.silent_for(self.heard.elapsed());
                }
            }
        }
    }

    fn hear(&mut self, news: Option<News>) -> anyhow::Result<()> {
        let Some(news) = news else {
            match self.state.contact() {
                Contact::Down(why) => bail!("the disks cannot be watched any longer: {why}"),
                _ => bail!("the thread that looks at the disks has failed"),
            }
        };
        self.state.hear(news);
        self.heard = Instant::now();
        Ok(())
    }

    /// Handles an event. Returns whether the session is over. The screen is drawn again after every
    /// event, such as a resize.
    fn obey(&mut self, event: &Event) -> anyhow::Result<bool> {
        let Event::Key(key) = event else {
            return Ok(false);
        };
        if key.kind == KeyEventKind::Release {
            return Ok(false);
        }
        match self.state.key(*key) {
            None => {}
            Some(Deed::Quit) => return Ok(true),
            Some(Deed::Ask(ask)) => self.link.ask(ask),
        }
        Ok(false)
    }
}

/// The signals that end the screen. Ctrl-C sends no signal here: in raw mode it arrives as a key.
struct Ends {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    quit: Signal,
}

impl Ends {
    fn new() -> std::io::Result<Ends> {
        Ok(Ends {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for one of these signals. A signal is not a failure, because a command that watches runs until
    /// it is stopped.
    async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}

/// The events of the terminal. A separate thread reads them until the program ends.
fn terminal_events() -> std::io::Result<UnboundedReceiver<Event>> {
    let (tell, news) = unbounded_channel();
    let read = move || {
        while let Ok(event) = event::read() {
            if tell.send(event).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".to_owned()).spawn(read)?;
    Ok(news)
}

const INTERVAL: Duration = Duration::from_secs(1);
/// How much longer than an interval a frame may take before the screen reports the delay.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the screen repeats that report while no frame comes.
const DOUBT_EVERY: Duration = Duration::from_secs(1);
