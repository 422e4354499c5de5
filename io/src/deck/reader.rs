//! Goes through the cards of a deck in order and makes a [`DeckModel`] of them.
//!
//! Invariant: every card is decided by the table of keywords; what a step holds in the end is complete.

use super::conditions::Amplitude;
use super::keywords::{self, Fate, Keyword};
use super::model::{DeckModel, Step};
use super::source::Source;
use crate::mesh_file::abaqus::card::DeckCard;
use crate::mesh_file::abaqus::element_types::{Kind, element_kind};
use crate::mesh_file::abaqus::sets::SetKind;
use crate::mesh_file::abaqus::{DeckParts, ElementCard};
use fem_mesh::{Error, Result};

/// A deck being read.
pub(super) struct Reader {
    pub(super) source: Source,
    pub(super) model: DeckModel,
    pub(super) elements: Vec<ElementCard>,
    pub(super) amplitudes: Vec<Amplitude>,
    /// What acts at present.
    pub(super) state: Step,
    pub(super) in_step: bool,
    /// Whether the step has said what it computes.
    has_procedure: bool,
    /// What this step has begun afresh.
    pub(super) renewed: Renewed,
    /// A *COUPLING whose *KINEMATIC or *DISTRIBUTING is to come.
    pub(super) coupling: Option<DeckCard>,
    /// A *TIE for cyclic symmetry whose *CYCLIC SYMMETRY MODEL is to come.
    pub(super) cyclic_ties: Vec<super::model::Tie>,
    /// What the user should know, once each.
    pub(super) notes: Vec<String>,
}

/// Kinds of cards that replaced what earlier steps gave.
#[derive(Debug, Default)]
pub(super) struct Renewed {
    pub(super) boundary: bool,
    pub(super) nodal: bool,
    pub(super) distributed: bool,
    pub(super) temperature: bool,
    pub(super) prints: [bool; 3],
}

/// Reads the cards.
///
/// # Errors
/// Whatever of the deck is wrong or not supported, with file and line.
pub(super) fn read(parts: DeckParts) -> Result<Reader> {
    let DeckParts {
        draft,
        cards,
        elements,
        names,
        instance,
    } = parts;
    let mut reader = Reader {
        source: Source::new(draft, names, instance),
        model: DeckModel::default(),
        elements,
        amplitudes: Vec::new(),
        state: Step::default(),
        in_step: false,
        has_procedure: false,
        renewed: Renewed::default(),
        coupling: None,
        cyclic_ties: Vec::new(),
        notes: Vec::new(),
    };
    let keywords = reader.admit(&cards)?;
    for (card, keyword) in cards.iter().zip(keywords) {
        if let Some(keyword) = keyword {
            reader.card(card, keyword)?;
        }
    }
    reader.finish()?;
    Ok(reader)
}

impl Reader {
    /// Decides every card, and every type of element, before any is read: the first that is not supported is named. `None`
    /// for a card that is passed over.
    fn admit(&mut self, cards: &[DeckCard]) -> Result<Vec<Option<&'static Keyword>>> {
        let mut elements = 0;
        let mut keywords = Vec::with_capacity(cards.len());
        for card in cards {
            if card.card.keyword.is_empty() {
                keywords.push(None);
                continue;
            }
            let keyword =
                keywords::find(&card.card).map_err(|e| self.source.located(card.place, e))?;
            if self.is_empty_section(card, keyword) {
                self.note(format!(
                    "*{} is passed over: its element set is empty",
                    keyword.name
                ));
                keywords.push(None);
                continue;
            }
            let said = keywords::admit(&card.card, keyword)
                .map_err(|e| self.source.located(card.place, e))?;
            said.into_iter().for_each(|note| self.note(note));
            if keyword.name == "ELEMENT" {
                self.admit_elements(elements)?;
                elements += 1;
            }
            keywords.push(matches!(keyword.fate, Fate::Followed(..)).then_some(keyword));
        }
        Ok(keywords)
    }

    /// A section of something else than solids that no element has.
    fn is_empty_section(&self, card: &DeckCard, keyword: &Keyword) -> bool {
        let is_section =
            keyword.name.ends_with("SECTION") && matches!(keyword.fate, Fate::Refused(_));
        let set = card.card.get("ELSET").filter(|_| is_section);
        set.is_some_and(|set| self.source.names.find(SetKind::Element, set).is_none())
    }

    /// Only solids are computed with; surface elements have no stiffness.
    fn admit_elements(&self, k: usize) -> Result<()> {
        let card = &self.elements[k];
        match element_kind(&card.name) {
            Kind::Solid { .. } | Kind::Unsupported(1..) => Ok(()),
            Kind::Surface(_) if card.name.starts_with("SFM3D") => Ok(()),
            _ => {
                let what = format!("elements of type {} are not supported", card.name);
                let error = self
                    .source
                    .error(card.place, what)
                    .expected("solids: C3D4, C3D6, C3D8, C3D10, C3D20, ...");
                Err(error.advice(
                    "model the part with solids; take elements out that only mark faces or lines",
                ))
            }
        }
    }

    /// Tells the user something, once.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// A parameter that must be there.
    pub(super) fn parameter<'a>(&self, card: &'a DeckCard, name: &str) -> Result<&'a str> {
        card.card
            .get(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| {
                let error = self
                    .source
                    .error(card.place, format!("*{} without {name}=", card.card.title));
                error.expected(format!("{name}=..."))
            })
    }

    fn card(&mut self, card: &DeckCard, keyword: &Keyword) -> Result<()> {
        if self.coupling.is_some() && !matches!(keyword.name, "KINEMATIC" | "DISTRIBUTING") {
            return Err(self.open_coupling());
        }
        match keyword.name {
            "HEADING" => self.heading(card),
            "MATERIAL" => return self.material(card),
            "ELASTIC" => return self.elastic(card),
            "DENSITY" => return self.density(card),
            "EXPANSION" => return self.expansion(card),
            "SOLID SECTION" => return self.section(card),
            "ORIENTATION" => return self.orientation(card),
            "DISTRIBUTION" => return self.distribution(card),
            "AMPLITUDE" => return self.amplitude(card),
            "INITIAL CONDITIONS" => return self.initial_conditions(card),
            "BOUNDARY" => return self.boundary(card),
            "CLOAD" => return self.cload(card),
            "DLOAD" => return self.dload(card),
            "DSLOAD" => return self.dsload(card),
            "TEMPERATURE" => return self.temperature(card),
            "EQUATION" => return self.equation(card),
            "MPC" => return self.mpc(card),
            "COUPLING" => self.coupling = Some(card.clone()),
            "KINEMATIC" => return self.coupled(card, true),
            "DISTRIBUTING" => return self.coupled(card, false),
            "RIGID BODY" => return self.rigid_body(card),
            "TIE" => return self.tie(card),
            "CYCLIC SYMMETRY MODEL" => return self.cyclic_symmetry(card),
            "TRANSFORM" => return self.transform(card),
            "PRE-TENSION SECTION" => return self.pre_tension(card),
            "NODE PRINT" | "EL PRINT" | "SECTION PRINT" => return self.print(card, keyword.name),
            "NODE FILE" | "EL FILE" | "NODE OUTPUT" | "ELEMENT OUTPUT" => self.file(card),
            "STEP" => return self.start_step(card),
            "STATIC" => return self.static_procedure(card),
            "END STEP" => return self.end_step(card),
            // Of the mesh, which has been read.
            _ => {}
        }
        Ok(())
    }

    fn heading(&mut self, card: &DeckCard) {
        if let (true, Some(line)) = (self.model.title.is_empty(), card.lines.first()) {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            self.model.title = words.join(" ");
        }
    }

    fn open_coupling(&self) -> Error {
        let place = self
            .coupling
            .as_ref()
            .map_or_else(Default::default, |card| card.place);
        self.source
            .error(place, "*COUPLING without a kind")
            .expected("*KINEMATIC or *DISTRIBUTING on the next line")
    }

    fn start_step(&mut self, card: &DeckCard) -> Result<()> {
        if self.in_step {
            let error = self.source.error(card.place, "*STEP within a step");
            return Err(error.expected("*END STEP before it"));
        }
        if let Some(value) = card
            .card
            .get("NLGEOM")
            .filter(|v| !v.eq_ignore_ascii_case("NO"))
        {
            let shown = if value.is_empty() {
                String::new()
            } else {
                format!("={value}")
            };
            let what = format!("*STEP, NLGEOM{shown} is not supported: displacements are small");
            let error = self.source.error(card.place, what);
            return Err(error.advice("take NLGEOM out if displacements and rotations are small"));
        }
        if card.card.has_flag("PERTURBATION") && !self.model.steps.is_empty() {
            let what = "*STEP, PERTURBATION behind another step is not supported: stresses do not stiffen the model";
            return Err(self
                .source
                .error(card.place, what)
                .advice("take PERTURBATION out if that does not matter"));
        }
        self.in_step = true;
        self.has_procedure = false;
        self.renewed = Renewed::default();
        let before = self.model.steps.last().map_or(0.0, |step| step.end);
        self.state.period = 1.0;
        self.state.end = before + 1.0;
        self.state.place = card.place;
        self.state.name = card.card.get("NAME").unwrap_or_default().to_owned();
        Ok(())
    }

    fn static_procedure(&mut self, card: &DeckCard) -> Result<()> {
        if !self.in_step {
            return Err(self
                .source
                .error(card.place, "*STATIC outside a step")
                .expected("*STEP before it"));
        }
        self.has_procedure = true;
        if let Some(data) = card.lines.first() {
            let line = self.source.line(data);
            let period = self
                .source
                .optional_number(&line, 1, "the length of the step")?
                .unwrap_or(1.0);
            if period <= 0.0 {
                return Err(self
                    .source
                    .error(line.place, "the step has no length")
                    .expected("a time greater than 0"));
            }
            self.state.end += period - self.state.period;
            self.state.period = period;
        }
        Ok(())
    }

    fn end_step(&mut self, card: &DeckCard) -> Result<()> {
        if !self.in_step {
            return Err(self
                .source
                .error(card.place, "*END STEP outside a step")
                .expected("*STEP before it"));
        }
        if !self.has_procedure {
            let error = self
                .source
                .error(self.state.place, "the step does not say what it computes");
            return Err(error.expected("*STATIC in the step"));
        }
        self.settle_pressures()?;
        self.in_step = false;
        self.model.steps.push(self.state.clone());
        Ok(())
    }

    /// What must have been there at the end of the deck.
    fn finish(&mut self) -> Result<()> {
        if self.coupling.is_some() {
            return Err(self.open_coupling());
        }
        if self.in_step {
            return Err(self
                .source
                .error(self.state.place, "the step does not end")
                .expected("*END STEP"));
        }
        if self.model.steps.is_empty() {
            let error = self
                .source
                .error(Default::default(), "the deck has no step");
            return Err(error
                .expected("*STEP, *STATIC and *END STEP")
                .advice("or name the deck as the mesh of a case file"));
        }
        if let Some(tie) = self.cyclic_ties.first() {
            let what = format!(
                "tie `{}` for cyclic symmetry has no *CYCLIC SYMMETRY MODEL",
                tie.name
            );
            return Err(self.source.error(Default::default(), what));
        }
        Ok(())
    }
}
