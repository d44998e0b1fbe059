//! Takes over the terminal for the full screen, and restores it however the program ends.

use std::io::{self, IsTerminal, Stdout, stdin, stdout};
use std::panic;

use anyhow::ensure;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// The full screen. Dropping this value restores the terminal.
pub(crate) struct Screen {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes over the terminal.
    pub(crate) fn take() -> io::Result<Screen> {
        give_back_on_panic();
        enable_raw_mode()?;
        // From here on, dropping `screen` restores the terminal.
        let screen =
            Terminal::new(CrosstermBackend::new(stdout())).map(|terminal| Screen { terminal });
        if screen.is_err() {
            give_back();
        }
        execute!(stdout(), EnterAlternateScreen)?;
        screen
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Checks that there is a terminal to draw on and to read keys from.
pub(crate) fn check(simulated: bool) -> anyhow::Result<()> {
    let instead = if simulated {
        "dashpot sim LAB"
    } else {
        "dashpot iostat -x 1"
    };
    ensure!(
        stdin().is_terminal() && stdout().is_terminal(),
        "top needs a terminal, and this is a pipe or a file: '{instead}' prints line by line"
    );
    Ok(())
}

/// Whether colours may be used: <https://no-color.org>.
pub(crate) fn has_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Restores the terminal before a panic's message is printed. Otherwise the message would be lost,
/// and the shell would have no echo.
fn give_back_on_panic() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        give_back();
        before(what);
    }));
}

/// Restores the terminal. A terminal that is gone need not be restored.
fn give_back() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
