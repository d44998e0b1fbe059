//! A line of text that a user types and edits.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A line and the place of the cursor in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    before: String,
    after: String,
}

impl Editor {
    /// A line to edit, with the cursor at its end.
    pub(crate) fn of(text: &str) -> Editor {
        Editor {
            before: text.to_owned(),
            after: String::new(),
        }
    }

    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.before, self.after)
    }

    /// How many characters are before the cursor.
    pub(crate) fn cursor(&self) -> usize {
        self.before.chars().count()
    }

    /// Handles a key as a shell's line editor does.
    pub(crate) fn key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.home(),
            KeyCode::Char('e') if control => self.end(),
            KeyCode::Char('u') if control => self.before.clear(),
            KeyCode::Char('k') if control => self.after.clear(),
            KeyCode::Char('w') if control => self.rub_out_word(),
            KeyCode::Char(typed) if !control => self.before.push(typed),
            KeyCode::Backspace => drop(self.before.pop()),
            KeyCode::Delete => self.drop_after(),
            KeyCode::Left => self.left(),
            KeyCode::Right => self.right(),
            KeyCode::Home => self.home(),
            KeyCode::End => self.end(),
            _ => {}
        }
    }

    fn left(&mut self) {
        if let Some(passed) = self.before.pop() {
            self.after.insert(0, passed);
        }
    }

    fn right(&mut self) {
        if let Some(passed) = self.after.chars().next() {
            self.before.push(passed);
            self.drop_after();
        }
    }

    fn drop_after(&mut self) {
        if !self.after.is_empty() {
            self.after.remove(0);
        }
    }

    fn home(&mut self) {
        *self = Editor {
            before: String::new(),
            after: self.text(),
        };
    }

    fn end(&mut self) {
        *self = Editor::of(&self.text());
    }

    fn rub_out_word(&mut self) {
        let kept = self.before.trim_end();
        let kept = kept.rfind(' ').map_or(0, |space| space + 1);
        self.before.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::Editor;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    #[test]
    fn a_line_is_typed_and_corrected() {
        let mut line = Editor::of("-D 10ms");
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        let shown = |line: &Editor| (line.text(), line.cursor());
        for (key, text, cursor) in [
            (plain(KeyCode::Char(':')), "-D 10ms:", 8),
            (plain(KeyCode::Char('1')), "-D 10ms:1", 9),
            (plain(KeyCode::Left), "-D 10ms:1", 8),
            (plain(KeyCode::Backspace), "-D 10ms1", 7),
            (plain(KeyCode::Right), "-D 10ms1", 8),
            (plain(KeyCode::Right), "-D 10ms1", 8),
            (control('w'), "-D ", 3),
            (plain(KeyCode::Char('ü')), "-D ü", 4),
            (plain(KeyCode::Left), "-D ü", 3),
            (plain(KeyCode::Delete), "-D ", 3),
            (plain(KeyCode::Home), "-D ", 0),
            (plain(KeyCode::Delete), "D ", 0),
            (control('e'), "D ", 2),
            (control('a'), "D ", 0),
            (control('k'), "", 0),
            (plain(KeyCode::Backspace), "", 0),
        ] {
            line.key(key);
            assert_eq!(shown(&line), (text.to_owned(), cursor), "{key:?}");
        }
    }
}
