//! The screen's state: the known facts, the selection, and the meaning of keys. The state takes in keys and
//! news, and returns deeds for the caller to carry out. It has no clock and no terminal.

use std::time::Duration;

use dashpot_api::Rule;
use dashpot_observe::Layer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::ask::{Ask, News};
use crate::board::{Board, Contact};
use crate::frame::{DiskFrame, PoolFrame};
use crate::prompt::{Prompt, Purpose};
use crate::sort::SortKey;

/// Everything that is drawn on the screen.
pub(crate) struct State {
    board: Board,
    /// The board that is shown while the display is paused.
    paused: Option<Board>,
    pub(crate) source: Origin,
    pub(crate) interval: Duration,
    pub(crate) sort: SortKey,
    pub(crate) focus: Pane,
    pub(crate) mode: Mode,
    /// The result of the last request.
    pub(crate) message: Option<Message>,
    disk: Option<String>,
    rule: Option<u32>,
    client: usize,
}

/// The source of the disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A daemon at this address.
    Daemon(String),
    Kernel,
    /// A simulation of this lab.
    Simulation(String),
}

/// A pane in which keys can move the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    Disks,
    Rules,
    Clients,
}

/// The current meaning of keys.
pub(crate) enum Mode {
    Watch,
    /// Help, beginning with this line.
    Help(usize),
    Prompt(Prompt),
    /// The question whether to clear this rule.
    Confirm(u32),
}

/// The result of a request, which the last line of the screen shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Done(String),
    Refused(String),
}

/// A deed: an action that a key asks the caller of the state to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Ask(Ask),
    Quit,
}

impl State {
    pub(crate) fn new(source: Origin, interval: Duration) -> State {
        State {
            board: Board::default(),
            paused: None,
            source,
            interval,
            sort: SortKey::default(),
            focus: Pane::Disks,
            mode: Mode::Watch,
            message: None,
            disk: None,
            rule: None,
            client: 0,
        }
    }

    /// The board to show.
    pub(crate) fn board(&self) -> &Board {
        self.paused.as_ref().unwrap_or(&self.board)
    }

    /// Whether frames still come. A pause of the display does not freeze this.
    pub(crate) fn contact(&self) -> &Contact {
        &self.board.contact
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    pub(crate) fn disks(&self) -> Vec<&DiskFrame> {
        self.sort.sorted(&self.board().frame.disks)
    }

    /// The selected disk; `None` only if there are no disks.
    pub(crate) fn disk(&self) -> Option<&DiskFrame> {
        let selected = self.disk.as_deref();
        let selected = selected.and_then(|name| self.board().disk(name));
        selected.or_else(|| self.disks().first().copied())
    }

    /// The pool of the selected disk or volume, or the first pool.
    pub(crate) fn pool(&self) -> Option<&PoolFrame> {
        let pools = &self.board().frame.pools;
        let own = self.disk().and_then(|disk| disk.pool.as_deref());
        let own = own.and_then(|own| pools.iter().find(|pool| pool.name == own));
        own.or_else(|| pools.first())
    }

    /// The rules of the selected disk.
    pub(crate) fn rules(&self) -> Vec<&Rule> {
        self.disk()
            .map_or_else(Vec::new, |disk| self.board().rules_of(&disk.name).collect())
    }

    /// The selected rule; `None` only if the selected disk has none.
    pub(crate) fn rule(&self) -> Option<&Rule> {
        let rules = self.rules();
        let selected = rules.iter().find(|rule| Some(rule.id) == self.rule);
        selected.or_else(|| rules.first()).copied()
    }

    /// The index of the selected client in the selected disk's list.
    pub(crate) fn client(&self) -> usize {
        let clients = self.disk().map_or(0, |disk| disk.clients.len());
        self.client.min(clients.saturating_sub(1))
    }

    /// Takes in news.
    pub(crate) fn hear(&mut self, news: News) {
        match news {
            News::Frame(frame) => self.board.take(*frame),
            News::Down(why) => self.board.contact = Contact::Down(why),
            News::Answer(ask, answer) => self.answered(&ask, answer),
        }
    }

    /// Notes that no news has come for longer than a frame should take. After the last frame, silence
    /// is normal.
    pub(crate) fn silent_for(&mut self, silence: Duration) {
        if self.board.frame.is_last() {
            return;
        }
        self.board.contact = Contact::Silent(silence);
    }

    fn answered(&mut self, ask: &Ask, answer: Result<String, String>) {
        if let Mode::Prompt(prompt) = &mut self.mode
            && prompt.sent.as_ref() == Some(ask)
        {
            match answer {
                Ok(done) => {
                    self.mode = Mode::Watch;
                    self.message = Some(Message::Done(done));
                }
                Err(why) => prompt.refused(why),
            }
            return;
        }
        self.message = Some(match answer {
            Ok(done) => Message::Done(done),
            Err(why) => Message::Refused(why),
        });
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Deed> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Some(Deed::Quit);
        }
        match &mut self.mode {
            Mode::Watch => self.watch_key(key),
            Mode::Help(from) => {
                self.mode = match key.code {
                    KeyCode::Char('j') | KeyCode::Down => Mode::Help(from.saturating_add(1)),
                    KeyCode::Char('k') | KeyCode::Up => Mode::Help(from.saturating_sub(1)),
                    _ => Mode::Watch,
                };
                None
            }
            Mode::Confirm(rule) => {
                let rule = *rule;
                self.mode = Mode::Watch;
                let yes = matches!(key.code, KeyCode::Char('y' | 'Y'));
                yes.then_some(Deed::Ask(Ask::Clear { rule }))
            }
            Mode::Prompt(_) if key.code == KeyCode::Esc => {
                self.mode = Mode::Watch;
                None
            }
            Mode::Prompt(prompt) => prompt.key(key).map(Deed::Ask),
        }
    }

    fn watch_key(&mut self, key: KeyEvent) -> Option<Deed> {
        self.message = None;
        match key.code {
            KeyCode::Char('q') => return Some(Deed::Quit),
            KeyCode::Char('?') => self.mode = Mode::Help(0),
            KeyCode::Char('j') | KeyCode::Down => self.select(1),
            KeyCode::Char('k') | KeyCode::Up => self.select(-1),
            KeyCode::Tab => self.focus = self.focus.next(),
            KeyCode::BackTab => self.focus = self.focus.next().next(),
            KeyCode::Char('s' | '>') => self.sort = self.sort.moved(1),
            KeyCode::Char('<') => self.sort = self.sort.moved(-1),
            KeyCode::Char('+' | '=') => return Some(self.slower(true)),
            KeyCode::Char('-') => return Some(self.slower(false)),
            KeyCode::Char(' ') => self.pause(),
            KeyCode::Char('a') => self.arm(),
            KeyCode::Char('u') => self.update(),
            KeyCode::Char('c') => self.clear(),
            KeyCode::Char('z') => return self.suspend_or_resume().map(Deed::Ask),
            _ => {}
        }
        None
    }

    fn pause(&mut self) {
        self.paused = match self.paused {
            Some(_) => None,
            None => Some(self.board.clone()),
        };
    }

    fn select(&mut self, by: isize) {
        match self.focus {
            Pane::Disks => {
                let names: Vec<&str> = self.disks().iter().map(|disk| disk.name.as_str()).collect();
                let now = self.disk().map(|disk| disk.name.as_str());
                let to = neighbour(&names, now, by).map(|name| (*name).to_owned());
                if to.as_deref() != now {
                    (self.disk, self.rule, self.client) = (to, None, 0);
                }
            }
            Pane::Rules => {
                let ids: Vec<u32> = self.rules().iter().map(|rule| rule.id).collect();
                self.rule = neighbour(&ids, self.rule().map(|rule| rule.id), by).copied();
            }
            Pane::Clients => self.client = self.client().saturating_add_signed(by),
        }
    }

    /// Selects the next or the previous of the offered intervals.
    fn slower(&mut self, slower: bool) -> Deed {
        let mut offered = INTERVALS.into_iter().map(Duration::from_millis);
        let next = if slower {
            offered.find(|one| *one > self.interval)
        } else {
            offered.rev().find(|one| *one < self.interval)
        };
        self.interval = next.unwrap_or(self.interval);
        Deed::Ask(Ask::Every(self.interval))
    }

    fn arm(&mut self) {
        if let Some(disk) = self.disk_to_change() {
            self.mode = Mode::Prompt(Prompt::new(Purpose::Arm { disk }, ""));
        }
    }

    fn update(&mut self) {
        if let Some((rule, words)) = self.rule_to_change() {
            self.mode = Mode::Prompt(Prompt::new(Purpose::Update { rule }, &words));
        }
    }

    fn clear(&mut self) {
        if let Some((rule, _)) = self.rule_to_change() {
            self.mode = Mode::Confirm(rule);
        }
    }

    fn suspend_or_resume(&mut self) -> Option<Ask> {
        let disk = self.disk_to_change()?;
        let suspended = self.disk().is_some_and(DiskFrame::is_suspended);
        Some(if suspended {
            Ask::Resume { disk }
        } else {
            Ask::Suspend { disk }
        })
    }

    /// The selected disk, if it can be changed. Otherwise sets a message with the reason.
    fn disk_to_change(&mut self) -> Option<String> {
        let refusal = match (&self.source, self.disk()) {
            (Origin::Kernel, _) => KERNELS,
            (_, None) => "there is no disk",
            (Origin::Simulation(_), Some(_)) if self.board.frame.is_last() => ENDED,
            (_, Some(disk)) if disk.layer == Layer::Volume => VOLUMES,
            (_, Some(disk)) => return Some(disk.name.clone()),
        };
        self.message = Some(Message::Refused(refusal.to_owned()));
        None
    }

    /// The selected rule and its words. Without a selected rule, sets a message.
    fn rule_to_change(&mut self) -> Option<(u32, String)> {
        let disk = self.disk_to_change()?;
        let rule = self.rule().map(|rule| (rule.id, rule.rule.clone()));
        if rule.is_none() {
            let refusal = format!("{disk} has no rule: press a to arm one");
            self.message = Some(Message::Refused(refusal));
        }
        rule
    }
}

impl Pane {
    fn next(self) -> Pane {
        match self {
            Pane::Disks => Pane::Rules,
            Pane::Rules => Pane::Clients,
            Pane::Clients => Pane::Disks,
        }
    }
}

/// The element that is `by` places after `now`, or the last element in that direction.
fn neighbour<T: PartialEq>(all: &[T], now: Option<T>, by: isize) -> Option<&T> {
    let at = all.iter().position(|one| Some(one) == now.as_ref());
    let to = at.map_or(0, |at| at.saturating_add_signed(by));
    all.get(to.min(all.len().saturating_sub(1)))
}

/// The intervals that the keys `+` and `-` can select, in milliseconds.
const INTERVALS: [u64; 9] = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];

const KERNELS: &str =
    "only disks of dashpot have rules and can be suspended: top only watches disks of the kernel";

const ENDED: &str = "the simulation has ended: nothing can be changed any more";

const VOLUMES: &str = "only disks have rules and can be suspended: select a disk below the volume";

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
