//! The steps that all watches share: an instance is prepared, and its events are enabled.

use rustix::time::{ClockId, clock_gettime};

use super::decoder::Decoder;
use super::format::{Format, FormatError};
use super::instance::Instance;
use super::page::Layout;
use crate::error::TraceError;

/// The file of an instance that switches the recording on and off.
pub(crate) const SWITCH: &str = "tracing_on";

/// Configures an instance. It records nothing yet.
pub(crate) fn prepare(instance: &Instance) -> Result<(), TraceError> {
    instance.write(SWITCH, "0")?;
    instance.write("trace_clock", "mono")?;
    // If no program reads in time, drop the oldest events. The next page then says that events were
    // lost. If the newest were dropped, nothing would show where.
    instance.write("options/overwrite", "1")?;
    // Events carry the names of their tasks. Recording names at every change of task would slow the
    // whole machine down. Some kernels do not let an instance choose; that does no harm.
    let _ = instance.write("trace_options", "norecord-cmd");
    Ok(())
}

/// Kernel memory for each CPU's events. A request leaves 140 bytes, or 200 if it is watched from
/// its queueing. At 200,000 requests a second, all of them on one CPU, 16 MiB are full after 600 or
/// 400 ms. That is eight times the time between two readings, because a busy host may keep a reader
/// waiting. With many CPUs the memory for each is smaller, because no CPU has that many requests to
/// itself.
pub(crate) fn buffer_kib(cpus: usize) -> usize {
    (BUFFERS_KIB / cpus.max(1)).clamp(BUFFER_KIB.0, BUFFER_KIB.1)
}

const BUFFERS_KIB: usize = 256 << 10;
const BUFFER_KIB: (usize, usize) = (1 << 10, 16 << 10);

/// Whether the kernel has an event.
pub(crate) fn has(instance: &Instance, event: &str) -> bool {
    instance.path(&format!("events/{event}/format")).exists()
}

/// Makes an instance record an event, if this filter passes it. Returns the number of its records, and their decoder.
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
