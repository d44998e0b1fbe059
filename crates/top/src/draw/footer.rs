//! The last lines of the screen: the keys, a question, or the result of the last command.

use ratatui::text::{Line, Span};

use super::Theme;
use super::columns::clip;
use crate::prompt::{Prompt, Purpose};
use crate::state::{Message, Mode, State};

/// The last lines of the screen, and the place of the cursor in these lines.
pub(super) struct Footer {
    pub(super) lines: Vec<Line<'static>>,
    /// The row and the column of the cursor; `None` if no line takes input.
    pub(super) cursor: Option<(u16, u16)>,
}

pub(super) fn footer(state: &State, theme: Theme, width: usize) -> Footer {
    let lines = match &state.mode {
        Mode::Prompt(prompt) => return prompt_footer(prompt, theme, width),
        Mode::Confirm(id) => vec![question(state, *id, theme)],
        Mode::Watch | Mode::Help(_) => match &state.message {
            Some(Message::Done(text)) => {
                wrapped(text, width, |line| Line::styled(line, theme.good()))
            }
            Some(Message::Refused(text)) => {
                wrapped(text, width, |line| Line::styled(line, theme.bad()))
            }
            None => vec![keys(theme, width)],
        },
    };
    Footer {
        lines,
        cursor: None,
    }
}

fn question(state: &State, id: u32, theme: Theme) -> Line<'static> {
    let rule = state.rules().into_iter().find(|rule| rule.id == id);
    let words = rule.map_or_else(String::new, |rule| format!(" ({})", rule.rule));
    Line::styled(format!("clear rule {id}{words}? y/n"), theme.warning())
}

fn prompt_footer(prompt: &Prompt, theme: Theme, width: usize) -> Footer {
    let title = match &prompt.purpose {
        Purpose::Arm { disk } => {
            format!("arm a rule on {disk}: the words of 'dashpot inject {disk} ...'")
        }
        Purpose::Update { rule } => {
            format!("update rule {rule}: the words of 'dashpot update {rule} ...'")
        }
    };
    let mut lines = vec![Line::styled(clip(&title, width), theme.focused())];
    let (shown, column) = window(
        &prompt.line.text(),
        prompt.line.cursor(),
        width.saturating_sub(3),
    );
    lines.push(if shown.is_empty() {
        Line::from(vec![Span::raw("> "), Span::styled(EXAMPLE, theme.faint())])
    } else {
        Line::raw(format!("> {shown}"))
    });
    match (&prompt.error, &prompt.sent) {
        (Some(error), _) => lines.extend(wrapped(error, width, |line| {
            Line::styled(line, theme.bad())
        })),
        (None, Some(_)) => lines.push(Line::styled("waiting for the answer", theme.faint())),
        (None, None) => lines.push(Line::styled(
            "Enter sends it, Esc cancels it",
            theme.faint(),
        )),
    }
    Footer {
        lines,
        cursor: Some((1, column as u16 + 2)),
    }
}

/// The part of a line that fits and contains the cursor, and the cursor's place in it.
fn window(text: &str, cursor: usize, room: usize) -> (String, usize) {
    let skipped = (cursor + 1).saturating_sub(room);
    (
        text.chars().skip(skipped).take(room).collect(),
        cursor - skipped,
    )
}

/// Breaks a text into up to four lines.
fn wrapped(text: &str, width: usize, line: impl Fn(String) -> Line<'static>) -> Vec<Line<'static>> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(last) = lines.last_mut() else { break };
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        }
    }
    lines.truncate(LINES_MAX);
    lines.into_iter().map(line).collect()
}

/// As many keys as fit, the most important first.
fn keys(theme: Theme, width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let mut used = 0;
    for (key, what) in KEYS {
        used += key.len() + what.len() + 3;
        if used > width + 2 {
            break;
        }
        spans.push(Span::styled(key, theme.key()));
        spans.push(Span::styled(format!(" {what}  "), theme.faint()));
    }
    Line::from(spans)
}

const KEYS: [(&str, &str); 10] = [
    ("?", "help"),
    ("q", "quit"),
    ("a", "arm"),
    ("u", "update"),
    ("c", "clear"),
    ("z", "suspend"),
    ("Tab", "pane"),
    ("s", "sort"),
    ("+/-", "interval"),
    ("space", "pause"),
];

const EXAMPLE: &str = "-D 10ms:1 -T read -f 10%";
const LINES_MAX: usize = 4;
