//! `record cut`: makes a recording from a part of another recording.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use anyhow::{Context, bail};
use dashpot_cli::CutArgs;
use dashpot_cli::reports::PeriodArgs;
use dashpot_export::complain;
use dashpot_observe::{FinishedIo, Layer, Predicates, Thread, Who};
use dashpot_output::{print, usage};
use dashpot_recording::{Cut, Event, Mark};
use dashpot_rules::{nice_number, thousands};
use dashpot_sources::{Owner, Recorded, UNKNOWN_DISK, check_dimensions};

/// Makes a recording from a part of another one.
pub fn cut(args: &CutArgs) -> anyhow::Result<()> {
    if args.output.exists() {
        let output = args.output.display();
        bail!("'{output}' exists: name a directory that does not");
    }
    let part = Recorded::open(&args.recording, &args.devices)?.part(&PeriodArgs {
        from: args.from,
        to: args.to,
        ..PeriodArgs::default()
    })?;
    let predicates = args.predicates.clone().unwrap_or_default();
    let layers = answering(&part, &predicates);
    part.tell_gaps(false);
    let made = make(args, &part, &predicates, &layers);
    let is_empty = matches!(made, Ok((0, _)));
    if made.is_err() || is_empty {
        // The user gets the error of the cut rather than an error of this removal. The cut has made the
        // directory, so nothing else is lost.
        let _ = fs::remove_dir_all(&args.output);
    }
    if is_empty {
        bail!("no I/O that ended in this part meets the conditions: nothing was written");
    }
    let (ios, bytes) = made?;
    let output = args.output.display();
    let (ios, bytes) = (thousands(ios), nice_number(bytes));
    print(&format!("{output}: {ios} I/Os, {bytes} bytes\n"))
}

/// The layers that were recorded in this part, and whose I/Os have all facts that the conditions need. If
/// there is no such layer, and a recorded layer lacks these facts, the program ends.
fn answering(part: &Recorded, predicates: &Predicates) -> Vec<Layer> {
    let mut layers = Vec::new();
    let mut refusal = None;
    for layer in part.layers() {
        // The mark that ended the recording of the layer's disks lies before the part. Without this mark, the
        // new recording would show the disks as idle.
        if part.is_without(layer) {
            let disks = Owner::of(layer).disks();
            complain(format_args!(
                "The new recording has no I/Os of --layer {}: {disks} were not recorded any more.",
                layer.word()
            ));
            continue;
        }
        match check_dimensions(predicates.dimensions(), part.knows_on(layer)) {
            Ok(()) => layers.push(layer),
            Err(error) => refusal = Some((layer, error)),
        }
    }
    match refusal {
        Some((_, error)) if layers.is_empty() => usage(&error),
        Some((layer, error)) => complain(format_args!(
            "The new recording has no I/Os of --layer {}: {error}",
            layer.word()
        )),
        None => {}
    }
    layers
}

/// Makes the recording, and returns how many I/Os and how many bytes it has.
fn make(
    args: &CutArgs,
    part: &Recorded,
    predicates: &Predicates,
    layers: &[Layer],
) -> anyhow::Result<(u64, u64)> {
    let mut names = args.anonymous.then(Numbers::default);
    let host = if args.anonymous {
        ANONYMOUS.to_owned()
    } else {
        part.host()?.unwrap_or_default()
    };
    let mut cut = Cut::create(&args.output, &host)?;
    part.each_recorded(|mut one| {
        if !layers.contains(&one.io.layer) || !predicates.select(&one.io) {
            return Ok(());
        }
        if let Some(names) = &mut names {
            names.replace(&mut one.io);
        }
        Ok(cut.add(&one)?)
    })?;
    let is_cut = |mark: &Mark| mark.event == Event::Watched && !part.is_about(mark, layers);
    for mut mark in part.marks().into_iter().filter(|mark| !is_cut(mark)) {
        if let Some(names) = &mut names {
            names.replace_in_mark(&mut mark);
        }
        cut.mark(&mark);
    }
    cut.mark(&cut_mark(part, predicates, args.anonymous));
    cut.finish().context("the new recording")
}

/// The mark of a recording that was cut from another recording. The mark names the conditions that the I/Os
/// meet; in an anonymous part, it names only the dimensions of the conditions.
fn cut_mark(part: &Recorded, predicates: &Predicates, is_anonymous: bool) -> Mark {
    let (_, to_ns) = part.moments();
    let words = predicates.dimensions().map(|by| format!("[{}]", by.word()));
    Mark {
        at_ns: to_ns,
        clock_ns: to_ns,
        event: Event::Cut,
        device: None,
        n: None,
        text: Some(if is_anonymous {
            words.collect()
        } else {
            predicates.to_string()
        }),
    }
}

/// Numbers that replace names; equal names get equal numbers.
#[derive(Default)]
struct Numbers(HashMap<(&'static str, String), Arc<str>>);

impl Numbers {
    fn replace(&mut self, io: &mut FinishedIo) {
        io.device = self.number("device", &io.device);
        io.who = io.who.take().map(|who| match who {
            Who::Client(name) => Who::Client(self.number("client", &name)),
            Who::Thread(own) => {
                let mut number =
                    |what, name: Option<Arc<str>>| name.map(|name| self.number(what, &name));
                Who::Thread(Thread {
                    process: number("process", own.process),
                    thread: number("thread", own.thread),
                    cgroup: number("cgroup", own.cgroup),
                    ..own
                })
            }
        });
    }

    fn replace_in_mark(&mut self, mark: &mut Mark) {
        let device = mark.device.take();
        mark.device = device.map(|device| self.number("device", &device).to_string());
        let text = mark.text.take();
        mark.text = match mark.event {
            Event::Watched | Event::Earlier => text,
            Event::Stacked => text.and_then(|text| {
                let (layer, over) = text.split_once(": ")?;
                let over: Vec<String> = over
                    .split(", ")
                    .map(|name| match name {
                        UNKNOWN_DISK => name.to_owned(),
                        name => self.number("device", name).to_string(),
                    })
                    .collect();
                Some(format!("{layer}: {}", over.join(", ")))
            }),
            // Devices of two layers may have got the same number.
            Event::Slow | Event::Vanished => text.and_then(|text| layer_of_text(&text)),
            // Without the owner, disks that were not recorded would look idle in the part.
            Event::WatchEnded | Event::Lost | Event::Clock | Event::InFlightUnknown => {
                let owner = text.and_then(|text| Owner::of_text(&text));
                owner.map(|owner| owner.word().to_owned())
            }
            _ => None,
        };
    }

    fn number(&mut self, kind: &'static str, name: &str) -> Arc<str> {
        let same = self.0.keys().filter(|(other, _)| *other == kind).count();
        let place = self.0.entry((kind, name.to_owned()));
        let number = place.or_insert_with(|| format!("{kind}{}", same + 1).into());
        Arc::clone(number)
    }
}

/// The word of a layer, if the text of a mark begins with one. In the text, a colon and more may follow the
/// word.
fn layer_of_text(text: &str) -> Option<String> {
    let word = text.split_once(':').map_or(text, |(word, _)| word);
    let layer = Layer::ALL.iter().find(|layer| layer.word() == word)?;
    Some(layer.word().to_owned())
}

const ANONYMOUS: &str = "anonymous";
