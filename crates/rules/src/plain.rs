//! Makes text from outside safe for a terminal. Names of clients, processes, pools and files may
//! have characters that move the cursor, change colours, or begin a line that looks like dashpot's own
//! output.
//!
//! All printed text goes through [`lines`], so no such character reaches a terminal. Text within a line, such
//! as a table's cell or a message of one line, goes through [`visible`] first, so that it cannot forge a line
//! either. JSON output goes through neither, because JSON has its own escapes.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Text for a terminal or a file of this locale. If the locale has no UTF-8 (`LANG=C`), the few characters beyond
/// ASCII that dashpot itself prints become ASCII, each in one column, so that tables stay aligned. Without any
/// locale, as in most containers, text stays as it is.
pub fn spelled(text: &str) -> Cow<'_, str> {
    if IS_ASCII.load(Ordering::Relaxed) && !text.is_ascii() {
        Cow::Owned(text.chars().map(in_ascii).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether the locale has no UTF-8.
static IS_ASCII: AtomicBool = AtomicBool::new(false);

/// Chooses the characters of [`spelled`] for the whole program: by the first of these locales that is not empty,
/// which are the values of `LC_ALL`, `LC_CTYPE` and `LANG`.
pub fn choose_characters<'a>(names: impl Iterator<Item = Cow<'a, str>>) {
    IS_ASCII.store(is_without_utf8(names), Ordering::Relaxed);
}

/// Whether the first of these locales that is not empty has another encoding than UTF-8.
fn is_without_utf8<'a>(mut names: impl Iterator<Item = Cow<'a, str>>) -> bool {
    let named = names.find(|name| !name.is_empty());
    let named = named.map(|name| name.to_ascii_lowercase().replace('-', ""));
    named.is_some_and(|name| !name.contains("utf8"))
}

/// The character of ASCII that looks most like a character that dashpot prints. Names from outside keep theirs.
fn in_ascii(c: char) -> char {
    match c {
        '\u{d7}' => 'x',                             // the multiplication sign
        '\u{2026}' => '~',                           // an ellipsis
        '\u{2013}' | '\u{2014}' | '\u{2212}' => '-', // dashes, minus
        '\u{b5}' | '\u{3bc}' => 'u',                 // micro
        '\u{b7}' => '.',                             // a middle dot
        '\u{2190}' => '<',                           // arrows
        '\u{2192}' => '>',
        '\u{2264}' => '<',              // at most
        '\u{2265}' => '>',              // at least
        '\u{2580}'..='\u{259f}' => '#', // blocks of pictures
        '\u{2500}' => '-',              // lines of pictures
        '\u{2502}' => '|',
        _ => c,
    }
}

fn escaped(text: &str, hides: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hides) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if hides(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::{in_ascii, is_without_utf8, lines, shell_word, visible};
    use std::borrow::Cow;

    #[test]
    fn what_moves_a_cursor_is_shown() {
        assert_eq!(visible("a\x1b[31mb\r"), r"a\u{1b}[31mb\r");
        assert_eq!(visible("1\n2\u{9b}H\u{202e}x"), r"1\n2\u{9b}H\u{202e}x");
        assert_eq!(lines("1\t2\n3\x07"), "1\t2\n3\\u{7}");
    }

    #[test]
    fn a_locale_without_utf8_is_named_by_the_first_variable_that_is_set() {
        let is =
            |names: &[&'static str]| is_without_utf8(names.iter().map(|name| Cow::Borrowed(*name)));
        for names in [
            &["C"][..],
            &["", "POSIX", "en_US.UTF-8"],
            &["de_DE.ISO-8859-1"],
        ] {
            assert!(is(names), "{names:?}");
        }
        for names in [&[][..], &[""], &["C.UTF-8", "C"], &["en_US.utf8"]] {
            assert!(!is(names), "{names:?}");
        }
        let text: String = "2\u{d7}wB 12\u{b5}s uid=0\u{2026}7 größer"
            .chars()
            .map(in_ascii)
            .collect();
        assert_eq!(text, "2xwB 12us uid=0~7 größer");
    }

    #[test]
    fn a_word_of_a_remedy_can_be_typed() {
        assert_eq!(shell_word("unix:/run/api.sock"), "unix:/run/api.sock");
        assert_eq!(shell_word("/tmp/my disk's"), "\"/tmp/my disk's\"");
    }

    #[test]
    fn what_is_plain_is_left_alone() {
        for text in ["", "uid=0 pid=7", "größer — 12 µs …"] {
            assert!(matches!(visible(text), std::borrow::Cow::Borrowed(same) if same == text));
        }
    }
}
