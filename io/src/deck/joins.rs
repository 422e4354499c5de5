//! Cards that join nodes: equations, multi-point constraints, couplings, rigid bodies, ties, cyclic symmetry, local
//! systems, pre-tension.
//!
//! Invariant: says what is joined, not how; nodes are not yet looked up.

use super::model::{Coupling, Join, JoinKind, Nodes, RigidNodes, Surface, Tie, Transform};
use super::reader::Reader;
use crate::mesh_file::abaqus::card::DeckCard;
use crate::mesh_file::abaqus::sets::SetKind;
use crate::mesh_file::draft::Place;
use fem_mesh::Result;

/// Fields of a term of an equation.
const TERM: usize = 3;
/// Types of *MPC that are linear for small displacements.
const MPCS: [&str; 3] = ["PLANE", "STRAIGHT", "BEAM"];

impl Reader {
    fn join(&mut self, kind: JoinKind, place: Place) {
        self.model.joins.push(Join { kind, place });
    }

    /// Number of terms, then terms of node, degree of freedom and coefficient over several lines; and again.
    pub(super) fn equation(&mut self, card: &DeckCard) -> Result<()> {
        let mut lines = card.lines.iter();
        while let Some(data) = lines.next() {
            let head = self.source.line(data);
            let n_terms = self.source.whole(&head, 0, "the number of terms")?;
            self.at_most(&head, 1, "the number of terms")?;
            let mut terms = Vec::new();
            while (terms.len() as u64) < n_terms {
                let Some(data) = lines.next() else {
                    let what = format!("the equation has {} of {n_terms} terms", terms.len());
                    return Err(self
                        .source
                        .error(head.place, what)
                        .expected("node, degree of freedom, coefficient for each"));
                };
                let line = self.source.line(data);
                for k in (0..line.len())
                    .step_by(TERM)
                    .filter(|&k| line.get(k).is_some())
                {
                    let nodes = self
                        .source
                        .nodes(line.get(k).unwrap_or_default(), line.place)?;
                    let dof = self
                        .source
                        .whole(&line, k + 1, "a degree of freedom, 1 to 6")?;
                    if !(1..=6).contains(&dof) {
                        let what = format!("an equation on degree of freedom {dof}");
                        return Err(self
                            .source
                            .error(line.place, what)
                            .expected("a degree of freedom from 1 to 6"));
                    }
                    terms.push((
                        nodes,
                        dof,
                        self.source.number(&line, k + 2, "a coefficient")?,
                    ));
                }
            }
            if terms.len() as u64 > n_terms || terms.is_empty() {
                let what = format!("the equation has {} terms", terms.len());
                return Err(self
                    .source
                    .error(head.place, what)
                    .expected(format!("{n_terms} terms, as its first line says")));
            }
            self.join(JoinKind::Equation(terms), head.place);
        }
        Ok(())
    }

    pub(super) fn mpc(&mut self, card: &DeckCard) -> Result<()> {
        let mut lines = card.lines.iter().peekable();
        while let Some(data) = lines.next() {
            let line = self.source.line(data);
            let kind = line.get(0).unwrap_or_default().to_ascii_uppercase();
            if !MPCS.contains(&kind.as_str()) {
                let what = format!("*MPC of type {kind} is not supported");
                return Err(self
                    .source
                    .error(line.place, what)
                    .expected(format!("one of {}", MPCS.join(", "))));
            }
            let mut nodes = self.node_list(data, 1)?;
            // A line that begins with a number goes on with the one before.
            while let Some(next) =
                lines.next_if(|next| next.text.starts_with(|c: char| c.is_ascii_digit()))
            {
                nodes.extend(self.node_list(next, 0)?);
            }
            if nodes.len() < 2 {
                return Err(self
                    .source
                    .error(line.place, "the constraint joins one node")
                    .expected("two nodes or more"));
            }
            self.join(JoinKind::Mpc(kind, nodes), line.place);
        }
        Ok(())
    }

    fn node_list(
        &self,
        data: &crate::mesh_file::abaqus::card::DataLine,
        from: usize,
    ) -> Result<Vec<Nodes>> {
        let line = self.source.line(data);
        let fields = (from..line.len()).filter_map(|k| line.get(k));
        fields
            .map(|field| self.source.nodes(field, line.place))
            .collect()
    }

    /// A surface of faces or of nodes.
    fn surface(&self, name: &str, place: Place) -> Result<Surface> {
        let faces = self.source.set(SetKind::Surface, name, place);
        match faces {
            Ok(name) => Ok(Surface::Faces(name)),
            Err(error) => match self.source.set(SetKind::Node, name, place) {
                Ok(name) => Ok(Surface::Nodes(name)),
                Err(_) => Err(error),
            },
        }
    }

    /// *KINEMATIC or *DISTRIBUTING behind *COUPLING.
    pub(super) fn coupled(&mut self, card: &DeckCard, is_kinematic: bool) -> Result<()> {
        let Some(head) = self.coupling.take() else {
            let what = format!("*{} without *COUPLING before it", card.card.title);
            return Err(self.source.error(card.place, what));
        };
        let reference = self.parameter(&head, "REFNODE")?;
        let reference = self.source.nodes(reference, head.place)?;
        let surface = self.surface(self.parameter(&head, "SURFACE")?, head.place)?;
        let mut dofs = Vec::new();
        for data in &card.lines {
            let line = self.source.line(data);
            let first = self.source.whole(&line, 0, "a degree of freedom, 1 to 6")?;
            let last = match line.get(1) {
                Some(_) => self
                    .source
                    .whole(&line, 1, "the last degree of freedom, 1 to 6")?,
                None => first,
            };
            if first == 0 || last < first || last > 6 {
                let what = format!("degrees of freedom {first} to {last}");
                return Err(self
                    .source
                    .error(line.place, what)
                    .expected("degrees of freedom from 1 to 6"));
            }
            dofs.extend(first..=last);
        }
        if dofs.is_empty() {
            dofs.extend(1..=6);
        }
        dofs.sort_unstable();
        dofs.dedup();
        let coupling = Coupling {
            name: head
                .card
                .get("CONSTRAINTNAME")
                .unwrap_or_default()
                .to_owned(),
            is_kinematic,
            reference,
            surface,
            orientation: head.card.get("ORIENTATION").map(str::to_owned),
            dofs,
        };
        self.join(JoinKind::Coupling(coupling), head.place);
        Ok(())
    }

    pub(super) fn rigid_body(&mut self, card: &DeckCard) -> Result<()> {
        for parameter in ["PINNSET", "TIENSET"] {
            if card.card.get(parameter).is_some() {
                let what = format!("*RIGID BODY with {parameter}= is not supported");
                return Err(self
                    .source
                    .error(card.place, what)
                    .expected("NSET= or ELSET="));
            }
        }
        let nodes = match (card.card.get("NSET"), card.card.get("ELSET")) {
            (Some(name), None) => {
                RigidNodes::NodeSet(self.source.set(SetKind::Node, name, card.place)?)
            }
            (None, Some(name)) => {
                RigidNodes::ElementSet(self.source.set(SetKind::Element, name, card.place)?)
            }
            _ => {
                let error = self
                    .source
                    .error(card.place, "*RIGID BODY does not say what is rigid");
                return Err(error.expected("NSET= or ELSET="));
            }
        };
        let number = |text: &str| {
            let parsed = text.parse::<u64>();
            parsed.map_err(|_| {
                self.source
                    .error(card.place, format!("`{text}` is no node number"))
            })
        };
        let reference = number(self.parameter(card, "REFNODE")?)?;
        let rotation = card.card.get("ROTNODE").map(number).transpose()?;
        let kind = JoinKind::RigidBody {
            nodes,
            reference,
            rotation,
        };
        self.join(kind, card.place);
        Ok(())
    }

    pub(super) fn tie(&mut self, card: &DeckCard) -> Result<()> {
        let tolerance = match card.card.get("POSITIONTOLERANCE") {
            Some(text) => Some(self.source.parse_number(text, card.place, "a distance")?),
            None => None,
        };
        let adjusts = !card
            .card
            .get("ADJUST")
            .is_some_and(|v| v.eq_ignore_ascii_case("NO"));
        let mut ties = Vec::new();
        for data in &card.lines {
            let line = self.source.line(data);
            let side = |k: usize| match line.get(k) {
                Some(name) => self.surface(name, line.place),
                None => {
                    let error = self.source.error(line.place, "the tie names no surface");
                    Err(error.expected("a slave and a master surface"))
                }
            };
            let tie = Tie {
                name: card.card.get("NAME").unwrap_or_default().to_owned(),
                slave: side(0)?,
                master: side(1)?,
                tolerance,
                adjusts,
            };
            self.at_most(&line, 2, "a slave and a master surface")?;
            ties.push((tie, line.place));
        }
        if ties.is_empty() {
            return Err(self
                .source
                .error(card.place, "*TIE names no surfaces")
                .expected("a slave and a master surface"));
        }
        for (tie, place) in ties {
            if card.card.has_flag("CYCLICSYMMETRY") {
                self.cyclic_ties.push(tie);
            } else {
                self.join(JoinKind::Tie(tie), place);
            }
        }
        Ok(())
    }

    pub(super) fn cyclic_symmetry(&mut self, card: &DeckCard) -> Result<()> {
        let text = self.parameter(card, "N")?;
        let n_sectors = text
            .parse::<u64>()
            .ok()
            .filter(|&n| n >= 1)
            .ok_or_else(|| {
                self.source
                    .error(card.place, format!("`{text}` is no number of sectors"))
                    .expected("a whole number from 1 on")
            })?;
        let Some(data) = card.lines.first() else {
            return Err(self
                .source
                .error(card.place, "the axis is missing")
                .expected("two points on the axis: six numbers"));
        };
        let line = self.source.line(data);
        let axis = [
            self.source
                .vector(&line, 0, "two points on the axis: six numbers")?,
            self.source
                .vector(&line, 3, "two points on the axis: six numbers")?,
        ];
        let wanted = card.card.get("TIE");
        let is_wanted = |tie: &Tie| wanted.is_none_or(|name| name.eq_ignore_ascii_case(&tie.name));
        let Some(k) = self.cyclic_ties.iter().position(is_wanted) else {
            let error = self
                .source
                .error(card.place, "*CYCLIC SYMMETRY MODEL finds no tie");
            return Err(error.expected("a *TIE, CYCLIC SYMMETRY before it"));
        };
        let tie = self.cyclic_ties.remove(k);
        let kind = JoinKind::Cyclic {
            slave: tie.slave,
            master: tie.master,
            tolerance: tie.tolerance,
            n_sectors,
            axis,
        };
        self.join(kind, card.place);
        Ok(())
    }

    pub(super) fn transform(&mut self, card: &DeckCard) -> Result<()> {
        let nodes = self
            .source
            .set(SetKind::Node, self.parameter(card, "NSET")?, card.place)?;
        let is_cylindrical =
            self.is_cylindrical(card.card.get("TYPE").unwrap_or("R"), "TYPE", card.place)?;
        let Some(data) = card.lines.first() else {
            let error = self.source.error(card.place, "*TRANSFORM lacks its points");
            return Err(error.expected("the coordinates of points a and b: six numbers"));
        };
        let line = self.source.line(data);
        let a = self
            .source
            .vector(&line, 0, "the coordinates of points a and b: six numbers")?;
        let b = self
            .source
            .vector(&line, 3, "the coordinates of points a and b: six numbers")?;
        self.model.transforms.push(Transform {
            nodes,
            is_cylindrical,
            a,
            b,
            place: card.place,
        });
        Ok(())
    }

    pub(super) fn pre_tension(&mut self, card: &DeckCard) -> Result<()> {
        if card.card.get("ELEMENT").is_some() {
            let error = self.source.error(
                card.place,
                "*PRE-TENSION SECTION on a beam is not supported",
            );
            return Err(error.expected("SURFACE=, a surface of solids"));
        }
        let surface = self.source.set(
            SetKind::Surface,
            self.parameter(card, "SURFACE")?,
            card.place,
        )?;
        let text = self.parameter(card, "NODE")?;
        let node = text.parse().map_err(|_| {
            self.source
                .error(card.place, format!("`{text}` is no node number"))
        })?;
        let normal = match card.lines.first() {
            Some(data) => {
                let line = self.source.line(data);
                self.source.unit(
                    self.source.vector(&line, 0, "the normal: three numbers")?,
                    line.place,
                )?
            }
            None => {
                let error = self.source.error(
                    card.place,
                    "*PRE-TENSION SECTION without a normal is not supported",
                );
                return Err(
                    error.expected("the normal of the section: three numbers on the next line")
                );
            }
        };
        let kind = JoinKind::PreTension {
            surface,
            node,
            normal,
        };
        self.join(kind, card.place);
        Ok(())
    }
}
