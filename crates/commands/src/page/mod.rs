//! The page for a source that has no daemon: the kernel's disks, a simulation, or a recording.

mod kernel;
mod recording;
mod simulation;
mod view;

use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::bail;
use dashpot_cli::PageArgs;
use dashpot_daemon::http::{HttpListener, Manners, Memory, page_router};
use dashpot_rules::{Address, Listen};
use tokio::sync::oneshot;

use super::endpoint::Endpoint;

pub use kernel::KernelWatch;
pub(crate) use recording::RecordedMemory;
pub use simulation::play;
pub use view::view;

/// The page that answers browsers from its own thread. Dropping the page ends the thread.
pub struct Page {
    /// The address of the page, with its token unless the user has given that.
    pub url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Page {
    /// Begins to answer browsers.
    pub fn start(args: &PageArgs, memory: Arc<dyn Memory>) -> anyhow::Result<Page> {
        let address = match args.listen() {
            Listen::At(address @ Address::Tcp(_)) => address,
            _ => bail!("--page: a browser needs a port: give tcp:127.0.0.1:0, which picks one"),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = runtime.block_on(HttpListener::bind("--page", &address))?;
        let door = Endpoint::new(&listener, args.allow_host.clone(), None)?;
        let router = page_router(memory, door.access.clone());
        let url = door.page.clone();
        let (stop, stopped) = oneshot::channel();
        let answer = async move {
            tokio::select! {
                () = listener.serve(router, Manners::OneRequestUntilKnown) => {}
                _ = stopped => {}
            }
            drop(door);
        };
        let thread = std::thread::Builder::new().name("page".to_owned());
        Ok(Page {
            url,
            stop: Some(stop),
            thread: Some(thread.spawn(move || {
                runtime.block_on(answer);
                // Do not wait for a thread that is still reading a long recording for a browser.
                runtime.shutdown_background();
            })?),
        })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, it has printed its message.
            let _ = thread.join();
        }
    }
}

/// How many bytes of I/Os a source keeps in memory for its page.
const MEMORY: usize = 256 << 20;
