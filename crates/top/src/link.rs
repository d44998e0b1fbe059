//! The thread that queries and changes the disks, so that the screen never waits.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dashpot_observe::Intervals;
use dashpot_probe::Device;
use dashpot_rules::Speed;
use dashpot_sources::Named;
use dashpot_sources::now_ns;
use tokio::sync::mpsc::UnboundedSender;

use crate::ask::{Ask, News};
use crate::daemon::Daemon;
use crate::kernel::Kernel;
use crate::sim::{Live, Sim};

/// A thread that makes a frame at the end of each interval. Dropping this value ends the thread.
pub(crate) struct Link {
    asks: Option<Sender<Ask>>,
    /// The thread, if the program must wait for its end.
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Makes frames of a daemon. When the program ends, it does not wait for a daemon that does not answer.
    pub(crate) fn to_daemon(
        daemon: Daemon,
        interval: Duration,
        news: UnboundedSender<News>,
    ) -> anyhow::Result<Link> {
        let (asks, asked) = channel();
        let watcher = Watcher {
            daemon,
            interval,
            asked,
            news,
        };
        spawn(move || watcher.run())?;
        Ok(Link {
            asks: Some(asks),
            thread: None,
        })
    }

    /// Makes frames of the kernel's disks. The program waits for the end of this thread, which must clean up
    /// in the kernel.
    pub(crate) fn to_kernel(
        devices: Vec<Device>,
        named: Named,
        interval: Duration,
        news: UnboundedSender<News>,
    ) -> anyhow::Result<Link> {
        let (asks, asked) = channel();
        let (begun, begins) = channel();
        let kernel = Kernel {
            devices,
            named,
            interval,
            asked,
            news,
        };
        // Sending cannot fail, because the receiver lives until this message arrives.
        let thread = spawn(move || kernel.run(|outcome| drop(begun.send(outcome))))?;
        begins.recv()??;
        Ok(Link {
            asks: Some(asks),
            thread: Some(thread),
        })
    }

    /// Makes frames of a simulation. The thread leaves nothing behind, so the program does not wait for it.
    pub(crate) fn to_simulation(
        sim: Sim,
        speed: Speed,
        interval: Duration,
        news: UnboundedSender<News>,
    ) -> anyhow::Result<Link> {
        let (asks, asked) = channel();
        let live = Live::new(sim, speed, interval, asked, news);
        spawn(move || live.run())?;
        Ok(Link {
            asks: Some(asks),
            thread: None,
        })
    }

    /// Sends a request. If the thread is gone, its channel closes, and the screen notices that.
    pub(crate) fn ask(&self, ask: Ask) {
        if let Some(asks) = &self.asks {
            let _ = asks.send(ask);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, it has printed its message.
            let _ = thread.join();
        }
    }
}

fn spawn(run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name("frames".to_owned()).spawn(run)
}

struct Watcher {
    daemon: Daemon,
    interval: Duration,
    asked: Receiver<Ask>,
    news: UnboundedSender<News>,
}

impl Watcher {
    fn run(mut self) {
        let period_ns = |interval: Duration| interval.as_nanos() as u64;
        let mut intervals = Intervals::new(now_ns(), period_ns(self.interval), None);
        while !self.news.is_closed() {
            let due_ns = intervals.due_ns().unwrap_or(u64::MAX);
            let rest = Duration::from_nanos(due_ns.saturating_sub(now_ns()));
            match self.asked.recv_timeout(rest) {
                Ok(Ask::Every(interval)) => {
                    self.interval = interval;
                    intervals.every(period_ns(interval));
                }
                Ok(ask) => self.carry_out(ask),
                Err(RecvTimeoutError::Timeout) => self.frame(&mut intervals),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Sends a frame. The interval ends when the daemon has answered. Later intervals that are due by
    /// then are missed.
    fn frame(&mut self, intervals: &mut Intervals) {
        let answer = self.daemon.frame();
        let missed = intervals.end(now_ns()).map_or(0, |span| span.missed);
        self.tell(match answer {
            Ok(mut frame) => {
                frame.check_length(self.interval, missed);
                News::Frame(Box::new(frame))
            }
            Err(error) => News::Down(format!("{error:#}")),
        });
    }

    fn carry_out(&self, ask: Ask) {
        let answer = self.daemon.carry_out(&ask);
        self.tell(News::Answer(ask, answer.map_err(|error| error.to_string())));
        // If this fails, the next frame also fails, and the user sees that error.
        if let Ok(frame) = self.daemon.glance() {
            self.tell(News::Frame(Box::new(frame)));
        }
    }

    /// Sends news. If the screen is gone, the thread notices before its next frame.
    fn tell(&self, news: News) {
        let _ = self.news.send(news);
    }
}
