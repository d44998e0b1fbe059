//! The terminal, taken for the full screen and given back however the program ends.

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

/// The full screen. Dropping it gives the terminal back.
pub(super) struct Screen {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Screen> {
        give_back_on_panic();
        enable_raw_mode()?;
        // From here on it is given back.
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

/// Whether there is a terminal to draw on, and to read keys from.
pub(super) fn check(simulated: bool) -> anyhow::Result<()> {
    let instead = match simulated {
        true => "dashpot sim LAB",
        false => "dashpot iostat -x 1",
    };
    ensure!(
        stdin().is_terminal() && stdout().is_terminal(),
        "top takes a terminal, and this is a pipe or a file: '{instead}' prints line by line"
    );
    Ok(())
}

/// Whether colours may be used: <https://no-color.org>.
pub(super) fn has_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A panic's message would be lost with the full screen, and the shell left without an echo.
fn give_back_on_panic() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        give_back();
        before(what);
    }));
}

/// A terminal that is gone cannot be given back, and need not be.
fn give_back() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
