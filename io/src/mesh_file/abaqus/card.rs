//! One keyword line of a deck: `*KEYWORD, PARAMETER=VALUE, FLAG`.
//!
//! Invariant: knows the syntax, not the meaning of any keyword.

use super::super::draft::Place;
use super::super::scan::trim;

/// A keyword line taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    /// The keyword in capitals as written, for messages: `SOLID SECTION`.
    pub(crate) title: String,
    /// The keyword in capitals without blanks: `SOLIDSECTION`.
    pub(crate) keyword: String,
    /// Parameters: name in capitals without blanks, value as written.
    pub(crate) parameters: Vec<(String, String)>,
}

/// A keyword line with its data lines.
#[derive(Clone, Debug)]
pub(crate) struct DeckCard {
    pub(crate) card: Card,
    pub(crate) place: Place,
    pub(crate) lines: Vec<DataLine>,
}

/// A data line, without blanks around it.
#[derive(Clone, Debug)]
pub(crate) struct DataLine {
    pub(crate) text: String,
    pub(crate) place: Place,
}

/// Keywords that may be cut short.
const LONG: [&str; 5] = ["ELEMENT", "SURFACE", "INCLUDE", "INSTANCE", "ASSEMBLY"];

impl Card {
    /// Takes the line without its star. Continuation lines have been appended to it.
    pub(crate) fn parse(line: &[u8]) -> Card {
        let mut fields =
            split_unquoted(line).map(|f| String::from_utf8_lossy(trim(f)).into_owned());
        let title = fields.next().unwrap_or_default().to_ascii_uppercase();
        let mut keyword = title.replace([' ', '\t'], "");
        if let Some(whole) = LONG
            .iter()
            .find(|l| keyword.len() >= 4 && l.starts_with(&keyword))
        {
            keyword = (*whole).to_owned();
        }
        let parameters = fields
            .filter(|field| !field.is_empty())
            .map(|field| {
                let (name, value) = field.split_once('=').unwrap_or((&field, ""));
                let name = name.replace([' ', '\t'], "").to_ascii_uppercase();
                (name, unquoted(value.trim()).to_owned())
            })
            .collect();
        Card {
            title: title.split_ascii_whitespace().collect::<Vec<_>>().join(" "),
            keyword,
            parameters,
        }
    }

    /// Value of a parameter; empty for a flag.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a flag is there, whole or cut to three letters or more.
    pub(crate) fn has_flag(&self, name: &str) -> bool {
        self.parameters
            .iter()
            .any(|(n, _)| n.len() >= 3 && name.starts_with(n.as_str()))
    }
}

/// A name without the quotes around it.
pub(crate) fn unquoted(text: &str) -> &str {
    let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    inner.unwrap_or(text)
}

/// The fields between commas that stand outside quotes.
fn split_unquoted(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    line.split(move |&byte| {
        quoted ^= byte == b'"';
        byte == b',' && !quoted
    })
}

#[cfg(test)]
mod tests {
    use super::Card;

    #[test]
    fn keywords_and_parameters_in_any_spelling() {
        let card = Card::parse(b"Elset , ELSET = \"My, set\", Gen,  internal");
        assert_eq!(
            (card.title.as_str(), card.keyword.as_str()),
            ("ELSET", "ELSET")
        );
        assert_eq!(card.get("ELSET"), Some("My, set"));
        assert!(card.has_flag("GENERATE") && !card.has_flag("UNSORTED"));
        let card = Card::parse(b" solid  Section,elset=A");
        assert_eq!(
            (card.title.as_str(), card.keyword.as_str()),
            ("SOLID SECTION", "SOLIDSECTION")
        );
        assert_eq!(Card::parse(b"Elem,Type=c3d8").keyword, "ELEMENT");
        assert_eq!(Card::parse(b"NODE PRINT").keyword, "NODEPRINT");
    }
}
