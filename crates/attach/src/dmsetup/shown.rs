//! The output of dmsetup, in the layouts of the original tool.

use anyhow::bail;
use dashpot_export::store::{device_numbers, device_users};
use dashpot_output::print;
use dashpot_rules::dm::{Target, parse_table};

use super::mapped::Mapped;
use crate::sysfs::attribute;

pub(super) fn table(name: Option<&str>, inactive: bool) -> anyhow::Result<()> {
    each(name, |mapped| {
        Ok(if inactive {
            mapped.state.inactive.clone().unwrap_or_default()
        } else {
            mapped.state.live.clone()
        })
    })
}

/// Prints how many reads, writes and flushes are delayed at the moment, in dm-delay's layout.
pub(super) fn status(name: Option<&str>) -> anyhow::Result<()> {
    each(name, |mapped| {
        let table = parse_table(&mapped.state.live)?;
        let sectors = table.sectors;
        if table.target == Target::Error {
            return Ok(format!("0 {sectors} error"));
        }
        let rules = mapped.client()?.rules_of(&mapped.name)?;
        let now = |name: &str| {
            let of_class = rules
                .iter()
                .filter(|rule| rule.name.as_deref() == Some(name));
            of_class.map(|rule| rule.counters.now).sum::<u64>()
        };
        let [read, write, flush] = ["dm-read", "dm-write", "dm-flush"].map(now);
        Ok(format!("0 {sectors} delay {read} {write} {flush}"))
    })
}

/// Prints the line of the named device, if the line is not empty. Without a name, prints the name and the
/// line of each device.
fn each(
    name: Option<&str>,
    line: impl Fn(&Mapped) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    if let Some(name) = name {
        let line = line(&Mapped::find(name)?)?;
        return if line.is_empty() {
            Ok(())
        } else {
            print(&format!("{line}\n"))
        };
    }
    let all = Mapped::all()?;
    if all.is_empty() {
        return print(NONE);
    }
    print_each(&all, "", |mapped| {
        Ok(format!("{}: {}\n", mapped.name, line(mapped)?))
    })
}

pub(super) fn info(name: Option<&str>) -> anyhow::Result<()> {
    let all = match name {
        Some(name) => vec![Mapped::find(name)?],
        None => Mapped::all()?,
    };
    if all.is_empty() {
        return print(NONE);
    }
    print_each(&all, "\n", block)
}

/// Prints the text of each device. Then fails if there is no text for some devices, because their daemons are
/// gone.
fn print_each(
    all: &[Mapped],
    between: &str,
    text: impl Fn(&Mapped) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let (mut said, mut refused) = (Vec::new(), Vec::new());
    for mapped in all {
        match text(mapped) {
            Ok(text) => said.push(text),
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    print(&said.join(between))?;
    if refused.is_empty() {
        Ok(())
    } else {
        bail!(refused.join("; "))
    }
}

/// The state of a device, in the layout of `dmsetup info`. The open count includes only the users that this
/// process can see. dashpot does not count the device mapper's events.
fn block(mapped: &Mapped) -> anyhow::Result<String> {
    let state = match mapped.client()?.disk(&mapped.name, 0)?.suspended {
        Some(_) => "SUSPENDED",
        None => "ACTIVE",
    };
    let tables = match mapped.state.inactive {
        Some(_) => "LIVE & INACTIVE",
        None => "LIVE",
    };
    let ahead = attribute(&mapped.node, "queue/read_ahead_kb");
    let ahead = ahead.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 2;
    let (major, minor) = device_numbers(&mapped.node).unwrap_or_default();
    let opened = device_users(&mapped.node).len();
    Ok(format!(
        "Name:              {}\n\
         State:             {state}\n\
         Read Ahead:        {ahead}\n\
         Tables present:    {tables}\n\
         Open count:        {opened}\n\
         Event number:      0\n\
         Major, minor:      {major}, {minor}\n\
         Number of targets: 1\n",
        mapped.name
    ))
}

pub(super) fn ls() -> anyhow::Result<()> {
    let all = Mapped::all()?;
    if all.is_empty() {
        return print(NONE);
    }
    let line = |mapped: &Mapped| match mapped.present_node() {
        Some(node) => {
            let (major, minor) = device_numbers(node).unwrap_or_default();
            format!("{}\t({major}:{minor})\n", mapped.name)
        }
        None => format!("{}\t(its daemon is gone)\n", mapped.name),
    };
    print(&all.iter().map(line).collect::<String>())
}

const NONE: &str = "No devices found\n";
