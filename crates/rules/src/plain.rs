//! Makes text from outside safe for a terminal. Names of clients, processes, pools and files may
//! have characters that move the cursor, change colours, or begin a line that looks like dashpot's own
//! output.
//!
//! All printed text goes through [`lines`], so no such character reaches a terminal. Text within a line, such
//! as a table's cell or a message of one line, goes through [`visible`] first, so that it cannot forge a line
//! either. JSON output goes through neither, because JSON has its own escapes.

use std::borrow::Cow;

/// Makes hidden characters in text within a line visible, in Rust's notation, such as `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Makes whole lines safe. Line feeds and tabs are kept.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// Whether a character is a control character or changes the direction of text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text as one word of a shell: quoted if it has a space or another character that a shell would interpret.
/// Every command in a message, such as a remedy, takes the words that it does not know in advance from here.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    // Only a NUL cannot be quoted, and no path or name has one.
    shlex::try_quote(text).unwrap_or(Cow::Borrowed(text))
}

fn escaped(text: &str, hides: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hides) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match hides(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::{lines, visible};

    #[test]
    fn what_moves_a_cursor_is_shown() {
        assert_eq!(visible("a\x1b[31mb\r"), r"a\u{1b}[31mb\r");
        assert_eq!(visible("1\n2\u{9b}H\u{202e}x"), r"1\n2\u{9b}H\u{202e}x");
        assert_eq!(lines("1\t2\n3\x07"), "1\t2\n3\\u{7}");
    }

    #[test]
    fn what_is_plain_is_left_alone() {
        for text in ["", "uid=0 pid=7", "größer — 12 µs …"] {
            assert!(matches!(visible(text), std::borrow::Cow::Borrowed(same) if same == text));
        }
    }
}
