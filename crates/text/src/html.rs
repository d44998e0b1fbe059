//! A report as a single HTML file, to attach to a ticket or to keep as a pipeline's artefact. A browser can
//! open the file from a local disk, and the page loads nothing from any host. The page's security policy
//! permits only the page's own script and styles, by their hashes. The data in the page is inert text.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The command line that prints the same report again.
    pub command: String,
    /// Facts about the report, such as its time and its host, with their names.
    pub facts: Vec<(&'static str, String)>,
    /// The report's picture, if the report has one.
    pub svg: Option<String>,
    /// The report's text.
    pub text: String,
    /// The report's pages, each as one JSON value.
    pub pages: Vec<serde_json::Value>,
    /// How many pages were left out because the file would have been too large.
    pub left_out: u64,
}

impl Document {
    /// The text of the HTML file.
    pub fn html(&self) -> String {
        let picture = self.svg.as_deref().map(lit).unwrap_or_default();
        let policy = policy(&picture);
        let title = escape(&self.command);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\n\
             <style>{STYLE}</style></head><body><main>\n\
             <header><span>dashpot report</span><span>All data is in this file.</span></header>\n\
             <h1>{title}</h1>\n<dl>"
        );
        for (name, words) in &self.facts {
            // Writing to a String cannot fail.
            let _ = write!(html, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(words));
        }
        html += "</dl>\n";
        if self.left_out > 0 {
            let count = self.left_out;
            let _ = writeln!(
                html,
                "<p class=\"lost\">{count} later pages are not in this file.</p>"
            );
        }
        if !picture.is_empty() {
            let _ = writeln!(html, "<div class=\"picture\">{picture}</div>");
        }
        let _ = write!(
            html,
            "<h2>Figures</h2>\n<div id=\"figure\"></div>\n\
             <div id=\"table\" class=\"scroll\" tabindex=\"0\"></div>\n"
        );
        // A page with an SVG picture does not need the picture in characters, too.
        if picture.is_empty() {
            let _ = writeln!(html, "<h2>Report</h2>\n<pre>{}</pre>", escape(&self.text));
        }
        let _ = write!(
            html,
            "<h2>Ask again</h2>\n<pre>{title}</pre>\n\
             <script type=\"application/json\" id=\"data\">{}</script>\n\
             <script>{SCRIPT}</script>\n</main></body></html>\n",
            inert(&self.pages)
        );
        html
    }
}

/// The page's security policy. A style in the picture has its own hash.
fn policy(picture: &str) -> String {
    let own = picture.split("<style>").skip(1);
    let own = own.filter_map(|rest| rest.split("</style>").next());
    let styles: String = [STYLE]
        .into_iter()
        .chain(own)
        .map(|style| format!(" {}", hash(style)))
        .collect();
    format!(
        "default-src 'none'; script-src {}; style-src{styles}; base-uri 'none'; form-action 'none'",
        hash(SCRIPT)
    )
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// The picture in the colours for a light page, because the page is always light.
fn lit(svg: &str) -> String {
    let begin = svg.find("<svg").unwrap_or(0);
    svg[begin..].replace("(prefers-color-scheme: dark)", "not all")
}

/// Turns any words into HTML text. Control characters are replaced, because they could end a line early or
/// hide the words after them.
fn escape(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '&' | '<' | '>' | '"' | '\'' => {
                let _ = write!(escaped, "&#{};", u32::from(letter));
            }
            '\n' | '\t' => escaped.push(letter),
            _ if letter.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// The pages as JSON that cannot close the HTML element around it.
fn inert(pages: &[serde_json::Value]) -> String {
    let text = serde_json::to_string(pages).unwrap_or_else(|_| "[]".to_owned());
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

/// `make page` builds the style and the script.
const STYLE: &str = include_str!("../../../web/dist/report-style.css");
const SCRIPT: &str = include_str!("../../../web/dist/report.js");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn document(name: &str) -> Document {
        Document {
            command: name.to_owned(),
            facts: vec![("host", name.to_owned())],
            svg: Some("<?xml?><svg><style>a{}</style></svg>".to_owned()),
            text: name.to_owned(),
            pages: vec![serde_json::json!({ "device": name, (name): [1] })],
            left_out: 0,
        }
    }

    proptest! {
        #[test]
        fn no_name_adds_an_element(name in "[<>/\"'&a-z!\\-]{0,24}|</script><script>|<!--|\\PC{0,8}") {
            let elements = |text: &str| text.matches('<').count();
            let html = document(&name).html();
            prop_assert_eq!(elements(&html), elements(&document("").html()));
            let (_, data) = html.split_once("id=\"data\">").unwrap();
            let (data, _) = data.split_once("</script>").unwrap();
            let back: serde_json::Value = serde_json::from_str(data).unwrap();
            prop_assert_eq!(&back[0]["device"], &serde_json::json!(name));
        }
    }

    #[test]
    fn the_policy_names_each_script_and_style_by_its_hash() {
        // The well-known SHA-256 hash of the empty text.
        assert_eq!(
            hash(""),
            "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
        );
        let html = document("d").html();
        assert!(html.contains("default-src 'none'; script-src 'sha256-"));
        assert!(html.contains(&hash("a{}")) && html.contains(&hash(SCRIPT)));
        assert!(!html.contains("unsafe") && !html.contains("style=\""));
    }

    #[test]
    fn a_letter_that_moves_the_cursor_is_shown() {
        assert_eq!(escape("a\u{1b}[2J\n<b>"), "a\u{fffd}[2J\n&#60;b&#62;");
    }
}
