//! Text of a case file, written table by table.
//!
//! Invariant: knows the syntax of TOML and places in a deck, no key.

use crate::case::ORIGIN;
use crate::mesh_file::draft::Place;
use std::fmt::Write;
use std::path::PathBuf;

/// The text so far.
pub(super) struct Toml {
    text: String,
    at: Place,
}

impl Toml {
    /// Begins the text: the files of the deck come first, for the places that follow.
    pub(super) fn new(files: &[PathBuf]) -> Self {
        let mut text = String::new();
        for file in files {
            let name = file.display().to_string().replace(['\n', '\r'], " ");
            let _ = writeln!(text, "{ORIGIN}{name}");
        }
        let at = Place::default();
        Toml { text, at }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Begins a table that stands for a line of the deck.
    pub(super) fn table(&mut self, title: &str, place: Place) {
        self.text.push('\n');
        self.at = Place::default();
        self.at(place);
        self.line(title);
    }

    /// What follows stands for a line of the deck.
    pub(super) fn at(&mut self, place: Place) {
        if place.line > 0 && place != self.at {
            let _ = writeln!(self.text, "{ORIGIN}{}:{}", place.file, place.line);
            self.at = place;
        }
    }

    pub(super) fn key(&mut self, key: &str, value: String) {
        let _ = writeln!(self.text, "{key} = {value}");
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// A text in quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A number, such that reading it gives the same.
pub(super) fn number(value: f64) -> String {
    format!("{value:?}")
}

/// `[item, item]`.
pub(super) fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

pub(super) fn vector(vector: [f64; 3]) -> String {
    list(vector.into_iter().map(number))
}
