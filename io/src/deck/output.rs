//! Cards of output: what is printed into the `.dat` file, and which fields the result file holds.
//!
//! Invariant: output never changes the answer, so that what is not known is said and passed over.

use super::model::{Print, PrintKind};
use super::reader::Reader;
use crate::case::PrintQuantity;
use crate::mesh_file::abaqus::card::DeckCard;
use crate::mesh_file::abaqus::sets::SetKind;
use fem_mesh::Result;

impl Reader {
    pub(super) fn print(&mut self, card: &DeckCard, keyword: &str) -> Result<()> {
        if !self.in_step {
            let what = format!("*{keyword} stands outside a step");
            return Err(self
                .source
                .error(card.place, what)
                .expected("it between *STEP and *END STEP"));
        }
        let (kind, parameter, set_kind) = match keyword {
            "NODE PRINT" => (PrintKind::Nodes, "NSET", SetKind::Node),
            "EL PRINT" => (PrintKind::Elements, "ELSET", SetKind::Element),
            _ => (PrintKind::Section, "SURFACE", SetKind::Surface),
        };
        let set = self
            .source
            .set(set_kind, self.parameter(card, parameter)?, card.place)?;
        let renewed = &mut self.renewed.prints[kind as usize];
        if !std::mem::replace(renewed, true) {
            self.state.prints.retain(|print| print.kind != kind);
        }
        if card.card.get("FREQUENCY").is_some_and(|f| f.trim() == "0") {
            return Ok(());
        }
        let quantities = self.quantities(card, keyword, kind);
        if quantities.is_empty() {
            return Ok(());
        }
        let totals = match card
            .card
            .get("TOTALS")
            .map(str::to_ascii_uppercase)
            .as_deref()
        {
            Some("YES") => "yes",
            Some("ONLY") => "only",
            _ => "no",
        };
        self.state.prints.push(Print {
            kind,
            set,
            quantities,
            global: card
                .card
                .get("GLOBAL")
                .is_some_and(|v| v.eq_ignore_ascii_case("YES")),
            totals,
            name: card.card.get("NAME").unwrap_or_default().to_owned(),
            place: card.place,
        });
        Ok(())
    }

    /// The quantities asked for that are printed.
    fn quantities(&mut self, card: &DeckCard, keyword: &str, kind: PrintKind) -> Vec<String> {
        let mut quantities = Vec::new();
        for name in names(card) {
            let known = PrintQuantity::ALL
                .iter()
                .any(|q| q.0 == name && q.2 == kind);
            if !known {
                self.note(format!(
                    "*{keyword}: {name} is not printed: there is no such result"
                ));
            } else if !quantities.contains(&name) {
                quantities.push(name);
            }
        }
        quantities
    }

    /// *NODE FILE, *EL FILE and the like: fields of the result file.
    pub(super) fn file(&mut self, card: &DeckCard) {
        if !self.in_step {
            return;
        }
        self.state.fields.extend(names(card));
    }
}

/// The names on the data lines, in capitals.
fn names(card: &DeckCard) -> Vec<String> {
    let fields = card.lines.iter().flat_map(|line| line.text.split(','));
    let names = fields.map(|field| field.trim().to_ascii_uppercase());
    names.filter(|name| !name.is_empty()).collect()
}
