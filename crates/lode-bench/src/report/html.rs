//! Text as HTML: escaping, sections, tables.

use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// A page of a `body` that is HTML. It needs nothing but itself.
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

/// `text` with the characters replaced that mean something in HTML.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A section with its heading, of a `body` that is HTML; nothing if that is
/// empty.
pub fn section(heading: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    format!("<section>\n<h2>{}</h2>\n{body}</section>\n", escape(heading))
}

/// A paragraph of text.
pub fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

/// A paragraph of text that can be passed over.
pub fn remark(text: &str) -> String {
    format!("<p class=\"faint\">{}</p>\n", escape(text))
}

/// A figure of `parts` that are HTML, with a caption of text.
pub fn figure(parts: &str, caption: &str) -> String {
    format!("<figure>\n{parts}<figcaption>{}</figcaption>\n</figure>\n", escape(caption))
}

/// What the colours of a picture mean: the names of colours 0, 1, 2, ...
pub fn legend<S: AsRef<str>>(names: &[S]) -> String {
    let mut html = String::from("<p class=\"faint legend\">");
    for (at, name) in names.iter().enumerate() {
        let _ = write!(
            html,
            "<span class=\"key\"><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect \
             width=\"10\" height=\"10\" class=\"{}\"/></svg>{}</span>",
            fill(at),
            escape(name.as_ref())
        );
    }
    html + "</p>\n"
}

/// The class of the colour `at`; the last one serves for all that follow.
pub fn fill(at: usize) -> &'static str {
    ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"][at.min(7)]
}

/// A table, row by row. The first cell of a row is its name.
pub struct Table {
    html: String,
    columns: usize,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Table {
        let mut html = String::from("<div class=\"wide\"><table>\n<thead><tr>");
        for heading in headings {
            let _ = write!(html, "<th scope=\"col\">{}</th>", escape(heading));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        Table { html, columns: headings.len() }
    }

    /// Adds a row with a cell for each heading.
    pub fn row(&mut self, cells: &[String]) {
        self.push("<tr>", cells);
    }

    /// Adds a row in the colour of what is bad.
    pub fn bad_row(&mut self, cells: &[String]) {
        self.push("<tr class=\"bad\">", cells);
    }

    fn push(&mut self, opening: &str, cells: &[String]) {
        assert_eq!(cells.len(), self.columns, "a cell for each heading");
        self.html.push_str(opening);
        for cell in cells {
            let _ = write!(self.html, "<td>{}</td>", escape(cell));
        }
        self.html.push_str("</tr>\n");
    }

    /// The whole.
    pub fn html(self) -> String {
        self.html + "</tbody></table></div>\n"
    }
}
