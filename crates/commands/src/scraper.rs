//! A listener for Prometheus in a report that does not use tokio.

use std::thread::JoinHandle;

use dashpot_daemon::http::{HttpListener, Manners};
use dashpot_daemon::metrics::{Metrics, router};
use dashpot_rules::Address;
use tokio::sync::oneshot;

use crate::endpoint::metrics_url;

/// Answers scrapers from a thread of its own. Dropping the scraper removes its socket.
pub struct Scraper {
    /// The address of the metrics.
    pub url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Scraper {
    /// Begins to serve the metrics of a source at an address.
    pub fn start(
        address: &Address,
        allowed_hosts: &[String],
        source: impl Metrics,
    ) -> anyhow::Result<Scraper> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = runtime.block_on(HttpListener::bind("--metrics", address))?;
        let url = metrics_url(&listener);
        let router = router(source, listener.hosts(allowed_hosts));
        let (stop, stopped) = oneshot::channel();
        let answer = async move {
            tokio::select! {
                () = listener.serve(router, Manners::OneRequest) => {}
                _ = stopped => {}
            }
        };
        Ok(Scraper {
            url,
            stop: Some(stop),
            thread: Some(std::thread::spawn(move || runtime.block_on(answer))),
        })
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, it has printed its message, and there is nothing to clean
            // up.
            let _ = thread.join();
        }
    }
}
