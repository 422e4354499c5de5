//! The mesh part of an Abaqus or CalculiX deck.
//!
//! Read: *NODE, *ELEMENT, *NSET, *ELSET, *SURFACE, *INCLUDE, and one *PART with one *INSTANCE at its place. Keywords
//! that would change the mesh in a way we do not follow are refused; all others are named in one warning.
//! Sources: Abaqus Keywords Reference Guide; CalculiX CrunchiX user's manual.
//!
//! Invariant: reads no material, load or step. For a deck that is to be run ([`read_deck`]) it hands over the other
//! cards as they stand, to [`crate::deck`].

mod blocks;
pub(crate) mod card;
pub(crate) mod element_types;
pub(crate) mod sets;

use super::draft::{Draft, IdSet, Place};
use super::include::Open;
use super::scan::trim;
use blocks::Block;
use card::{Card, DataLine, DeckCard};
use element_types::{Kind, element_kind};
use fem_mesh::{Error, Result};
use sets::{Defined, SetKind, SetNames};
use std::collections::BTreeMap;
use std::path::Path;

/// Reads the mesh of the deck at `path` from its bytes.
pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Draft> {
    let mut reader = Reader::new(path, None);
    reader.read_file(0, bytes)?;
    reader.close_block()?;
    reader.warn_of_skipped();
    Ok(reader.draft)
}

/// A deck that is to be run: its mesh, and its cards in their order.
pub(crate) struct DeckParts {
    pub(crate) draft: Draft,
    /// All keyword lines, those of the mesh without their data.
    pub(crate) cards: Vec<DeckCard>,
    /// The *ELEMENT cards.
    pub(crate) elements: Vec<ElementCard>,
    pub(crate) names: SetNames,
    /// Name of the one instance, if there are parts.
    pub(crate) instance: Option<String>,
}

/// One *ELEMENT card.
pub(crate) struct ElementCard {
    /// The type in capitals.
    pub(crate) name: String,
    pub(crate) place: Place,
    /// Index of its first solid, and of its first other element, in the draft.
    pub(crate) first: (usize, usize),
}

/// Reads the bytes of the deck at `path`, all of it.
pub(crate) fn read_deck(path: &Path, bytes: &[u8]) -> Result<DeckParts> {
    let mut reader = Reader::new(path, Some(Vec::new()));
    reader.read_file(0, bytes)?;
    reader.close_block()?;
    Ok(DeckParts {
        draft: reader.draft,
        cards: reader.cards.unwrap_or_default(),
        elements: reader.elements,
        names: reader.names,
        instance: reader.instance,
    })
}

struct Reader {
    draft: Draft,
    /// What data lines mean at present.
    block: Block,
    /// The line being read.
    at: Place,
    names: SetNames,
    open: Open,
    /// Names of the one part and of its one instance.
    part: Option<String>,
    instance: Option<String>,
    /// Between *ASSEMBLY and *END ASSEMBLY, but not in the instance.
    in_assembly: bool,
    /// In the order of the deck, once each.
    skipped_keywords: Vec<String>,
    /// Counts by element name.
    skipped_elements: BTreeMap<String, usize>,
    /// Of a deck that is to be run: every card. `None` where only the mesh is wanted.
    cards: Option<Vec<DeckCard>>,
    /// The *ELEMENT cards.
    elements: Vec<ElementCard>,
}

/// Keywords without meaning for the mesh that need no warning.
const SILENT: [&str; 6] = [
    "HEADING",
    "PREPRINT",
    "ENDPART",
    "ENDINSTANCE",
    "ENDASSEMBLY",
    "END",
];

/// Keywords that make or move nodes and elements.
const REFUSED: [&str; 8] = [
    "NGEN", "NFILL", "NCOPY", "NMAP", "ELGEN", "ELCOPY", "SYSTEM", "SUBMODEL",
];

/// How many keywords a warning lists.
const SHOWN: usize = 12;

impl Reader {
    fn new(path: &Path, cards: Option<Vec<DeckCard>>) -> Reader {
        Reader {
            draft: Draft::new(path.to_path_buf()),
            block: Block::Skip,
            at: Place::default(),
            names: SetNames::default(),
            open: Open::default(),
            part: None,
            instance: None,
            in_assembly: false,
            skipped_keywords: Vec::new(),
            skipped_elements: BTreeMap::new(),
            cards,
            elements: Vec::new(),
        }
    }

    fn error(&self, error: Error) -> Error {
        self.draft.error_at(self.at, error)
    }

    /// Reads file number `file` of the draft. What a data line means carries over into an included file and back.
    fn read_file(&mut self, file: u16, bytes: &[u8]) -> Result<()> {
        self.open.enter(&self.draft.files[usize::from(file)]);
        let outer = self.at;
        self.at = Place { file, line: 0 };
        let mut rest = bytes;
        while let Some(line) = self.next_line(&mut rest) {
            let Some(keyword_line) = line.strip_prefix(b"*") else {
                self.read_data(line)?;
                continue;
            };
            let mut keyword_line = keyword_line.to_vec();
            while keyword_line.ends_with(b",") && self.continues(rest) {
                keyword_line.extend(self.next_line(&mut rest).unwrap_or_default());
            }
            let card = Card::parse(&keyword_line);
            if card.keyword != "INCLUDE" {
                self.close_block()?;
            }
            self.read_card(&card)?;
        }
        self.at = outer;
        self.open.leave();
        Ok(())
    }

    /// The next line that is neither empty nor a comment, without blanks around it.
    fn next_line<'a>(&mut self, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        while !rest.is_empty() {
            let length = rest.iter().position(|&b| b == b'\n');
            let line = trim(&rest[..length.unwrap_or(rest.len())]);
            *rest = &rest[length.map_or(rest.len(), |n| n + 1)..];
            self.at.line += 1;
            if !line.is_empty() && !line.starts_with(b"**") {
                return Some(line);
            }
        }
        None
    }

    /// Whether the line after a keyword line that ends with a comma continues it (decks also end one so before data).
    fn continues(&self, mut rest: &[u8]) -> bool {
        let length = rest.iter().position(|&b| b == b'\n');
        rest = &rest[..length.unwrap_or(rest.len())];
        rest.contains(&b'=') && !trim(rest).starts_with(b"*")
    }

    fn read_card(&mut self, card: &Card) -> Result<()> {
        if let Some(cards) = self.cards.as_mut().filter(|_| card.keyword != "INCLUDE") {
            cards.push(DeckCard {
                card: card.clone(),
                place: self.at,
                lines: Vec::new(),
            });
        }
        match card.keyword.as_str() {
            "NODE" => self.start_nodes(card)?,
            "ELEMENT" => self.start_elements(card)?,
            "NSET" => self.start_set(card, SetKind::Node, "NSET")?,
            "ELSET" => self.start_set(card, SetKind::Element, "ELSET")?,
            "SURFACE" => self.start_surface(card)?,
            "INCLUDE" => {
                if card.get("INPUT").is_none() {
                    return Err(self.missing("INPUT", card));
                }
            }
            "PART" => self.start_part(card)?,
            "INSTANCE" => self.start_instance(card)?,
            "ASSEMBLY" => self.in_assembly = true,
            "ENDASSEMBLY" => self.in_assembly = false,
            "ENDINSTANCE" => self.in_assembly = true,
            keyword if REFUSED.contains(&keyword) => {
                let error = Error::input(format!("keyword *{} is not supported", card.title));
                return Err(
                    self.error(error.advice("write the deck with all nodes and elements listed"))
                );
            }
            _ if self.cards.is_some() => self.block = Block::Card,
            keyword if SILENT.contains(&keyword) => {}
            _ => {
                if !self.skipped_keywords.contains(&card.title) {
                    self.skipped_keywords.push(card.title.clone());
                }
            }
        }
        match card.get("INPUT") {
            Some(input)
                if matches!(
                    card.keyword.as_str(),
                    "INCLUDE" | "NODE" | "ELEMENT" | "NSET" | "ELSET"
                ) =>
            {
                self.include(input)
            }
            _ => Ok(()),
        }
    }

    fn missing(&self, parameter: &str, card: &Card) -> Error {
        self.error(
            Error::input(format!("*{} without {parameter}=", card.title))
                .expected(format!("{parameter}=...")),
        )
    }

    fn include(&mut self, input: &str) -> Result<()> {
        let opened = self.open.include(&mut self.draft, self.at.file, input);
        let (file, bytes) = opened.map_err(|error| match error.file() {
            Some(_) => error,
            None => self.error(error),
        })?;
        self.read_file(file, &bytes)
    }

    fn start_nodes(&mut self, card: &Card) -> Result<()> {
        if let Some(system) = card
            .get("SYSTEM")
            .filter(|s| !s.eq_ignore_ascii_case("R") && !s.is_empty())
        {
            let error = Error::input(format!("*NODE with SYSTEM={system} is not supported"));
            return Err(self.error(error.expected("rectangular coordinates")));
        }
        let set = card
            .get("NSET")
            .map(|name| self.define(SetKind::Node, name));
        self.block = Block::Nodes {
            set,
            first: self.draft.nodes.ids.len(),
        };
        Ok(())
    }

    fn start_elements(&mut self, card: &Card) -> Result<()> {
        let Some(name) = card
            .get("TYPE")
            .map(str::to_ascii_uppercase)
            .filter(|t| !t.is_empty())
        else {
            return Err(self.missing("TYPE", card));
        };
        let set = card
            .get("ELSET")
            .map(|name| self.define(SetKind::Element, name));
        let kind = element_kind(&name);
        if let Kind::Solid {
            cell_type,
            special: true,
        } = kind
        {
            let warning = format!(
                "element type {name} is read as {cell_type}: its special formulation is not kept"
            );
            if !self.draft.warnings.contains(&warning) {
                self.draft.warnings.push(warning);
            }
        }
        if self.cards.is_some() {
            self.elements.push(ElementCard {
                name: name.clone(),
                place: self.at,
                first: (self.draft.solids.ids.len(), self.draft.other_elements.len()),
            });
        }
        self.block = Block::elements(name, kind, set, &self.draft);
        Ok(())
    }

    fn start_set(&mut self, card: &Card, kind: SetKind, parameter: &str) -> Result<()> {
        let Some(name) = card.get(parameter).filter(|name| !name.is_empty()) else {
            return Err(self.missing(parameter, card));
        };
        if kind == SetKind::Node && card.get("ELSET").is_some() {
            let error = Error::input("*NSET with ELSET= is not supported")
                .advice("list the nodes of the set");
            return Err(self.error(error));
        }
        self.refuse_other_instance(card)?;
        let name = self.define(kind, name);
        self.block = Block::Set {
            kind,
            name,
            generate: card.has_flag("GENERATE"),
        };
        Ok(())
    }

    fn start_surface(&mut self, card: &Card) -> Result<()> {
        let Some(name) = card.get("NAME").filter(|name| !name.is_empty()) else {
            return Err(self.missing("NAME", card));
        };
        let of_type = card.get("TYPE").unwrap_or("ELEMENT").to_ascii_uppercase();
        self.block = match of_type.as_str() {
            "NODE" => Block::Set {
                kind: SetKind::Node,
                name: self.define(SetKind::Node, name),
                generate: false,
            },
            "ELEMENT" if card.get("COMBINE").is_none() => {
                let name = self.define(SetKind::Surface, name);
                self.draft.face_sets.entry(name.clone()).or_default();
                Block::Surface { name }
            }
            _ => {
                let warning =
                    format!("surface `{name}` is neither of elements nor of nodes, ignored");
                self.draft.warnings.push(warning);
                Block::Skip
            }
        };
        Ok(())
    }

    fn start_part(&mut self, card: &Card) -> Result<()> {
        let name = card.get("NAME").unwrap_or_default().to_owned();
        if let Some(first) = self.part.replace(name.clone()) {
            let error = Error::input(format!("more than one *PART: `{first}` and `{name}`"));
            return Err(self.error(error.advice("write a flat deck, without parts and instances")));
        }
        Ok(())
    }

    fn start_instance(&mut self, card: &Card) -> Result<()> {
        let name = card.get("NAME").unwrap_or_default().to_owned();
        self.in_assembly = false;
        self.block = Block::Instance { name: name.clone() };
        if let Some(first) = self.instance.replace(name.clone()) {
            let error = Error::input(format!("more than one *INSTANCE: `{first}` and `{name}`"));
            return Err(self.error(error.advice("write a flat deck, without parts and instances")));
        }
        Ok(())
    }

    fn refuse_other_instance(&self, card: &Card) -> Result<()> {
        let (Some(asked), known) = (card.get("INSTANCE"), self.instance.as_deref()) else {
            return Ok(());
        };
        if known.is_some_and(|name| name.eq_ignore_ascii_case(asked)) {
            return Ok(());
        }
        Err(self.error(Error::input(format!("there is no instance `{asked}`"))))
    }

    /// The name under which a set being defined is kept; makes the set.
    fn define(&mut self, kind: SetKind, name: &str) -> String {
        let name = match self.names.define(kind, name, self.in_assembly) {
            Defined::As(name) => name,
            Defined::Instead { name, of_part } => {
                let renamed = format!("{}.{of_part}", self.part.as_deref().unwrap_or_default());
                let draft = &mut self.draft;
                match kind {
                    SetKind::Node => rename(&mut draft.node_sets, &of_part, renamed),
                    SetKind::Element => rename(&mut draft.cell_sets, &of_part, renamed),
                    SetKind::Surface => rename(&mut draft.face_sets, &of_part, renamed),
                }
                name
            }
        };
        match kind {
            SetKind::Node => drop(self.draft.node_sets.entry(name.clone()).or_default()),
            SetKind::Element => drop(self.draft.cell_sets.entry(name.clone()).or_default()),
            SetKind::Surface => drop(self.draft.face_sets.entry(name.clone()).or_default()),
        }
        name
    }

    /// The set of that name, defined before this line. `Instance.Name` is a set of the one instance.
    fn find(&self, kind: SetKind, name: &str) -> Result<&IdSet> {
        let of_instance = self.instance.as_deref().and_then(|instance| {
            let (prefix, rest) = name.split_at_checked(instance.len())?;
            prefix
                .eq_ignore_ascii_case(instance)
                .then(|| rest.strip_prefix('.'))?
        });
        let written = self.names.find(kind, of_instance.unwrap_or(name));
        let sets = if kind == SetKind::Node {
            &self.draft.node_sets
        } else {
            &self.draft.cell_sets
        };
        written.and_then(|name| sets.get(name)).ok_or_else(|| {
            let error = Error::input(format!("{} `{name}` does not exist", kind.title()));
            self.error(error.expected("a set defined before this line"))
        })
    }

    /// Keeps a data line of a card that is not of the mesh.
    fn keep_line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line).into_owned();
        if let Some(card) = self.cards.as_mut().and_then(|cards| cards.last_mut()) {
            card.lines.push(DataLine {
                text,
                place: self.at,
            });
        }
    }

    fn warn_of_skipped(&mut self) {
        let warnings = &mut self.draft.warnings;
        if !self.skipped_elements.is_empty() {
            let counts: Vec<String> = self
                .skipped_elements
                .iter()
                .map(|(name, n)| format!("{n} {name}"))
                .collect();
            warnings.push(format!(
                "elements that are no solids add no stiffness (sets of surface elements stand for faces): {}",
                counts.join(", ")
            ));
        }
        let keywords = &self.skipped_keywords;
        if !keywords.is_empty() {
            let shown: Vec<String> = keywords
                .iter()
                .take(SHOWN)
                .map(|k| format!("*{k}"))
                .collect();
            let more = match keywords.len().saturating_sub(SHOWN) {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            warnings.push(format!(
                "only the mesh of the deck is read; ignored: {}{more}",
                shown.join(", ")
            ));
        }
    }
}

fn rename<T>(sets: &mut BTreeMap<String, T>, from: &str, to: String) {
    if let Some(set) = sets.remove(from) {
        sets.insert(to, set);
    }
}

#[cfg(test)]
mod tests;
