//! The steps that all watches share: they prepare an instance, and enable its events.

use rustix::time::{ClockId, clock_gettime};

use super::decoder::Decoder;
use super::format::{Format, FormatError};
use super::instance::Instance;
use super::page::Layout;
use super::{syncs, tasks};
use crate::error::TraceError;
use crate::sync::SyncCall;

/// The file of an instance that switches its recording of events on and off.
pub(crate) const SWITCH: &str = "tracing_on";

/// Configures an instance, which does not record any events yet.
pub(crate) fn prepare(instance: &Instance) -> Result<(), TraceError> {
    instance.write(SWITCH, "0")?;
    instance.write("trace_clock", "mono")?;
    // If no program reads in time, drop the oldest events. The next page then says that events were
    // lost. If the kernel dropped the newest events, nothing would show where events are missing.
    instance.write("options/overwrite", "1")?;
    // The events themselves have the names of their tasks. If the kernel also recorded names at every change
    // of task, the whole machine would be slower. Some kernels refuse this option for a private instance; the
    // events are then the same.
    let _ = instance.write("trace_options", "norecord-cmd");
    Ok(())
}

/// The kernel memory for each CPU's events, in KiB. The events of a request take 140 bytes, or 200 if it is
/// watched from its queueing. At 200,000 requests a second, all on one CPU, 16 MiB fill up in 600 or 400 ms.
/// Even 400 ms is eight times the time between two readings, which leaves a margin for a busy host on which
/// the reader has to wait. With many CPUs the memory for each is smaller, because no CPU has that many
/// requests to itself.
pub(crate) fn buffer_kib(cpus: usize) -> usize {
    (BUFFERS_KIB / cpus.max(1)).clamp(BUFFER_KIB.0, BUFFER_KIB.1)
}

const BUFFERS_KIB: usize = 256 << 10;
const BUFFER_KIB: (usize, usize) = (1 << 10, 16 << 10);

/// Whether the kernel has an event.
fn has(instance: &Instance, event: &str) -> bool {
    instance.path(&format!("events/{event}/format")).exists()
}

/// Makes an instance record an event or, if there is a filter, only the events that the filter passes.
/// Returns the number with which the event's records begin, and their decoder.
pub(crate) fn enable(
    instance: &Instance,
    event: &str,
    filter: Option<String>,
    decoder: impl FnOnce(&Format) -> Result<Decoder, FormatError>,
) -> Result<(u16, Decoder), TraceError> {
    let file = |file| format!("events/{event}/{file}");
    if !has(instance, event) {
        return Err(TraceError::NoEvent(event.to_owned()));
    }
    let what = || format!("description of '{event}'");
    let format = Format::parse(&instance.read(&file("format"))?);
    let format = format.map_err(|error| misunderstood(what(), error))?;
    let decoder = decoder(&format).map_err(|error| misunderstood(what(), error))?;
    if let Some(filter) = filter {
        instance.write(&file("filter"), &filter)?;
    }
    instance.write(&file("enable"), "1")?;
    Ok((format.id, decoder))
}

/// The facts about tasks to find out, and whether the kernel has the events for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) facts: tasks::Facts,
    pub(crate) is_followed: bool,
}

/// Makes an instance record the events that show these facts about tasks, and appends their decoders.
pub(crate) fn enable_tasks(
    instance: &Instance,
    facts: tasks::Facts,
    decoders: &mut Vec<(u16, Decoder)>,
) -> Result<Plan, TraceError> {
    let kinds = || {
        tasks::Kind::ALL
            .into_iter()
            .filter(|kind| kind.is_needed(facts))
    };
    let is_followed = kinds().all(|kind| has(instance, kind.path()));
    for kind in kinds().filter(|_| is_followed) {
        let decoder = |format: &Format| tasks::Decoder::new(kind, format).map(Decoder::Task);
        let filter = kind.filter(facts);
        decoders.push(enable(instance, kind.path(), filter, decoder)?);
    }
    Ok(Plan { facts, is_followed })
}

/// Makes an instance record the events of calls that sync, and those events of file systems that the kernel
/// has. Appends the decoders of all these events. A kernel whose file systems have no such events still has
/// the events of calls.
pub(crate) fn enable_syncs(
    instance: &Instance,
    decoders: &mut Vec<(u16, Decoder)>,
) -> Result<(), TraceError> {
    for call in SyncCall::ALL {
        let begin = |format: &Format| syncs::Decoder::begin(call, format).map(Decoder::Sync);
        let end = |format: &Format| syncs::Decoder::end(call, format).map(Decoder::Sync);
        decoders.push(enable(instance, &syncs::path("enter", call), None, begin)?);
        decoders.push(enable(instance, &syncs::path("exit", call), None, end)?);
    }
    for event in syncs::OF_FILE_SYSTEMS
        .iter()
        .filter(|event| has(instance, event))
    {
        let decoder = |format: &Format| syncs::Decoder::file(format).map(Decoder::Sync);
        match enable(instance, event, None, decoder) {
            Ok(own) => decoders.push(own),
            // The events of some old kernels lack the file system.
            Err(TraceError::Format { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn layout(instance: &Instance) -> Result<Layout, TraceError> {
    let text = instance.read("events/header_page")?;
    Layout::parse(&text).map_err(|error| misunderstood("description of its pages".into(), error))
}

pub(crate) fn misunderstood(what: String, error: FormatError) -> TraceError {
    TraceError::Format {
        what,
        why: error.to_string(),
    }
}

/// The clock of the events.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
