//! Cards of what is prescribed and what acts: *BOUNDARY, *CLOAD, *DLOAD, *DSLOAD, *TEMPERATURE, *INITIAL CONDITIONS,
//! *AMPLITUDE.
//!
//! Within a step, loads at one place add up; a step's load takes the place of an earlier step's (OP=MOD), or the card
//! begins afresh (OP=NEW). What an amplitude makes of a value is its factor at the end of the step, which is all that a
//! linear step depends on.
//!
//! Invariant: changes the state of the step being read, and nothing that was read before.

use super::model::{
    Direction, Elements, Faces, Fixed, InitialTensor, Load, LoadOn, Nodes, Temperature,
};
use super::reader::Reader;
use super::source::Line;
use crate::mesh_file::abaqus::card::DeckCard;
use crate::mesh_file::abaqus::sets::SetKind;
use crate::mesh_file::draft::Place;
use fem_mesh::Result;
use std::collections::HashSet;
use std::hash::Hash;

/// *AMPLITUDE.
#[derive(Debug)]
pub(super) struct Amplitude {
    pub(super) name: String,
    is_of_total_time: bool,
    /// Time and factor, ascending.
    points: Vec<(f64, f64)>,
}

impl Amplitude {
    /// Linear between the points, constant outside.
    pub(super) fn at(&self, time: f64) -> f64 {
        let after = self.points.partition_point(|p| p.0 < time);
        match (
            after.checked_sub(1).map(|k| self.points[k]),
            self.points.get(after),
        ) {
            (None, Some(first)) => first.1,
            (Some(last), None) => last.1,
            (Some((t0, v0)), Some(&(t1, v1))) => v0 + (v1 - v0) * (time - t0) / (t1 - t0),
            (None, None) => 0.0,
        }
    }

    /// The factor at the end of a step.
    pub(super) fn at_end(&self, period: f64, end: f64) -> f64 {
        self.at(if self.is_of_total_time { end } else { period })
    }
}

impl Reader {
    pub(super) fn amplitude(&mut self, card: &DeckCard) -> Result<()> {
        let name = self.parameter(card, "NAME")?.to_owned();
        for (parameter, wanted) in [("DEFINITION", "TABULAR"), ("VALUE", "RELATIVE")] {
            if let Some(other) = card
                .card
                .get(parameter)
                .filter(|v| !v.eq_ignore_ascii_case(wanted))
            {
                let what = format!("*AMPLITUDE, {parameter}={other} is not supported");
                return Err(self
                    .source
                    .error(card.place, what)
                    .expected(format!("{parameter}={wanted}")));
            }
        }
        let shift = |key| match card.card.get(key) {
            Some(text) => self.source.parse_number(text, card.place, "a number"),
            None => Ok(0.0),
        };
        let (shift_time, shift_value) = (shift("SHIFTX")?, shift("SHIFTY")?);
        let mut points: Vec<(f64, f64)> = Vec::new();
        for data in &card.lines {
            let line = self.source.line(data);
            for k in (0..line.len()).step_by(2) {
                let Some(time) = self.source.optional_number(&line, k, "a time")? else {
                    break;
                };
                let value = self.source.number(&line, k + 1, "a value for each time")?;
                points.push((time + shift_time, value + shift_value));
            }
        }
        if points.is_empty() || points.windows(2).any(|p| p[0].0 >= p[1].0) {
            let what = format!("the times of amplitude `{name}` do not ascend");
            return Err(self
                .source
                .error(card.place, what)
                .expected("pairs of time and value, by time"));
        }
        let is_of_total_time = card
            .card
            .get("TIME")
            .is_some_and(|t| t.to_ascii_uppercase().starts_with("TOTAL"));
        self.amplitudes.push(Amplitude {
            name,
            is_of_total_time,
            points,
        });
        Ok(())
    }

    /// The factor that AMPLITUDE= of a card makes of its values.
    fn factor(&self, card: &DeckCard) -> Result<f64> {
        let Some(name) = card.card.get("AMPLITUDE") else {
            return Ok(1.0);
        };
        let found = self
            .amplitudes
            .iter()
            .find(|a| a.name.eq_ignore_ascii_case(name));
        match found {
            Some(amplitude) => Ok(amplitude.at_end(self.state.period, self.state.end)),
            None => {
                let what = format!("amplitude `{name}` does not exist");
                Err(self
                    .source
                    .error(card.place, what)
                    .expected("an *AMPLITUDE before this line"))
            }
        }
    }

    /// Whether the card begins afresh.
    fn is_new(&self, card: &DeckCard) -> Result<bool> {
        match card.card.get("OP").map(str::to_ascii_uppercase).as_deref() {
            None | Some("MOD") => Ok(false),
            Some("NEW") => Ok(true),
            Some(other) => {
                let what = format!("OP={other} is not supported");
                Err(self
                    .source
                    .error(card.place, what)
                    .expected("OP=MOD or OP=NEW"))
            }
        }
    }

    /// Loads belong to a step.
    fn require_step(&self, card: &DeckCard) -> Result<()> {
        if self.in_step {
            return Ok(());
        }
        let what = format!("*{} stands outside a step", card.card.title);
        Err(self
            .source
            .error(card.place, what)
            .expected("it between *STEP and *END STEP"))
    }

    pub(super) fn boundary(&mut self, card: &DeckCard) -> Result<()> {
        let factor = self.factor(card)?;
        let is_fixed = card.card.has_flag("FIXED");
        if self.is_new(card)? && !self.renewed.boundary {
            self.renewed.boundary = true;
            self.state.fixed.clear();
        }
        let mut given = Vec::new();
        for data in &card.lines {
            let line = self.source.line(data);
            let (place, nodes) = (line.place, self.nodes_of(&line)?);
            let (dofs, value) = self.dofs_of(&line, 1)?;
            self.at_most(
                &line,
                4,
                "nodes, first and last degree of freedom, and a value",
            )?;
            for dof in dofs {
                let value = match value {
                    Some(_) if is_fixed => return Err(self.fixed_with_value(place)),
                    None if is_fixed => self.value_before(&nodes, dof, place)?,
                    _ => factor * value.unwrap_or(0.0),
                };
                given.push(Fixed {
                    nodes: nodes.clone(),
                    dof,
                    value,
                    place,
                });
            }
        }
        replace(&mut self.state.fixed, given, |fixed| {
            (fixed.nodes.clone(), fixed.dof)
        });
        Ok(())
    }

    fn fixed_with_value(&self, place: Place) -> fem_mesh::Error {
        let error = self.source.error(place, "*BOUNDARY, FIXED with a value");
        error.expected("nodes and degrees of freedom only, which keep the value of the step before")
    }

    /// The value of a degree of freedom at the end of the step before.
    fn value_before(&self, nodes: &Nodes, dof: u64, place: Place) -> Result<f64> {
        let before = self.model.steps.last();
        let wanted = self.source.node_ids(nodes);
        let holds = |f: &&Fixed| {
            f.dof == dof
                && (f.nodes == *nodes || {
                    let held = self.source.node_ids(&f.nodes);
                    wanted.iter().all(|id| held.binary_search(id).is_ok())
                })
        };
        match before.and_then(|step| step.fixed.iter().rev().find(holds)) {
            Some(fixed) => Ok(fixed.value),
            None => {
                let what = "*BOUNDARY, FIXED holds a degree of freedom that was free in the step before: not supported";
                Err(self
                    .source
                    .error(place, what)
                    .advice("give the displacement as a value"))
            }
        }
    }

    pub(super) fn nodes_of(&self, line: &Line<'_>) -> Result<Nodes> {
        let field = line.get(0).unwrap_or_default();
        if field.is_empty() {
            let error = self.source.error(line.place, "the line names no node");
            return Err(error.expected("the number of a node or the name of a node set"));
        }
        self.source.nodes(field, line.place)
    }

    /// Degrees of freedom of a *BOUNDARY line, and its value; names of supports as Abaqus has them.
    fn dofs_of(&self, line: &Line<'_>, k: usize) -> Result<(Vec<u64>, Option<f64>)> {
        let field = line.get(k).unwrap_or_default();
        let named: Option<&[u64]> = match field.to_ascii_uppercase().as_str() {
            "ENCASTRE" => Some(&[1, 2, 3, 4, 5, 6]),
            "PINNED" => Some(&[1, 2, 3]),
            "XSYMM" => Some(&[1, 5, 6]),
            "YSYMM" => Some(&[2, 4, 6]),
            "ZSYMM" => Some(&[3, 4, 5]),
            _ => None,
        };
        if let Some(dofs) = named {
            return Ok((dofs.to_vec(), None));
        }
        let first = self.source.whole(line, k, "a degree of freedom, 1 to 6")?;
        let last = match line.get(k + 1) {
            Some(_) => self
                .source
                .whole(line, k + 1, "the last degree of freedom, 1 to 6")?,
            None => first,
        };
        if first == 0 || last < first || last > 6 {
            let what = match first.max(last) {
                0 | 11.. => {
                    "the degree of freedom is a temperature or electrical, which statics has not"
                        .to_owned()
                }
                _ => format!("degrees of freedom {first} to {last}"),
            };
            return Err(self
                .source
                .error(line.place, what)
                .expected("degrees of freedom from 1 to 6"));
        }
        let value = self.source.optional_number(line, k + 2, "the value")?;
        Ok(((first..=last).collect(), value))
    }

    /// Removes what earlier cards gave, once a step, where the card says OP=NEW.
    fn renew_loads(&mut self, card: &DeckCard, is_nodal: bool) -> Result<()> {
        self.require_step(card)?;
        let renewed = if is_nodal {
            &mut self.renewed.nodal
        } else {
            &mut self.renewed.distributed
        };
        let done = *renewed;
        if self.is_new(card)? && !done {
            self.state
                .loads
                .retain(|load| load.on.is_nodal() != is_nodal);
            let renewed = if is_nodal {
                &mut self.renewed.nodal
            } else {
                &mut self.renewed.distributed
            };
            *renewed = true;
        }
        Ok(())
    }

    fn load(&self, on: LoadOn, value: f64, place: Place) -> Load {
        Load {
            on,
            value,
            of_node: None,
            step: self.model.steps.len(),
            place,
        }
    }

    /// Adds loads; they take the place of those of earlier steps that act alike.
    fn add_loads(&mut self, given: Vec<Load>) {
        let step = self.model.steps.len();
        if self.state.loads.iter().any(|load| load.step < step) {
            let alike: HashSet<&LoadOn> = given.iter().map(|load| &load.on).collect();
            self.state
                .loads
                .retain(|load| load.step == step || !alike.contains(&load.on));
        }
        self.state.loads.extend(given);
    }

    pub(super) fn cload(&mut self, card: &DeckCard) -> Result<()> {
        self.renew_loads(card, true)?;
        let factor = self.factor(card)?;
        let mut given = Vec::new();
        for data in &card.lines {
            let line = self.source.line(data);
            let nodes = self.nodes_of(&line)?;
            let dof = self.source.whole(&line, 1, "a degree of freedom, 1 to 6")?;
            if !(1..=6).contains(&dof) {
                let what = format!("a load on degree of freedom {dof}");
                return Err(self
                    .source
                    .error(line.place, what)
                    .expected("a degree of freedom from 1 to 6"));
            }
            let value = self.source.number(&line, 2, "the force or moment")?;
            self.at_most(&line, 3, "nodes, a degree of freedom and a value")?;
            given.push(self.load(LoadOn::Node(nodes, dof), factor * value, line.place));
        }
        self.add_loads(given);
        Ok(())
    }

    pub(super) fn dload(&mut self, card: &DeckCard) -> Result<()> {
        self.renew_loads(card, false)?;
        let factor = self.factor(card)?;
        let mut given = Vec::new();
        for data in &card.lines {
            let line = self.source.line(data);
            let elements = match line.get(0) {
                Some(field) => self.source.elements(field, line.place)?,
                None => {
                    let error = self.source.error(line.place, "the line names no element");
                    return Err(
                        error.expected("the number of an element or the name of an element set")
                    );
                }
            };
            let label = line.get(1).unwrap_or_default().to_ascii_uppercase();
            if let Some(face) = label
                .strip_prefix('P')
                .and_then(|rest| rest.strip_suffix("NP"))
            {
                let faces = Faces::Of(elements, self.face(&line, face)?);
                let node = self.source.whole(
                    &line,
                    2,
                    "the node whose degree of freedom 2 is the pressure",
                )?;
                given.push(self.load(LoadOn::Faces(faces), 0.0, line.place));
                if let Some(load) = given.last_mut() {
                    load.of_node = Some(node);
                }
                continue;
            }
            let (on, value) = self.distributed(&line, elements, &label)?;
            given.push(self.load(on, factor * value, line.place));
        }
        self.add_loads(given);
        Ok(())
    }

    /// What a *DLOAD line says.
    fn distributed(
        &self,
        line: &Line<'_>,
        elements: Elements,
        label: &str,
    ) -> Result<(LoadOn, f64)> {
        let value = self.source.number(line, 2, "the size of the load")?;
        let on = match label {
            "GRAV" => {
                let direction =
                    self.source
                        .vector(line, 3, "the direction of gravity: three numbers")?;
                let direction = Direction(self.source.unit(direction, line.place)?);
                LoadOn::Gravity(elements, direction)
            }
            "CENTRIF" => {
                let expected = "a point on the axis and the direction of the axis: six numbers";
                let origin = self.source.vector(line, 3, expected)?;
                let axis = self
                    .source
                    .unit(self.source.vector(line, 6, expected)?, line.place)?;
                if value < 0.0 {
                    let error = self
                        .source
                        .error(line.place, "the square of the speed is negative");
                    return Err(error.expected("the square of the angular speed"));
                }
                LoadOn::Centrifugal(elements, Direction(origin), Direction(axis))
            }
            "BX" => LoadOn::Body(elements, 0),
            "BY" => LoadOn::Body(elements, 1),
            "BZ" => LoadOn::Body(elements, 2),
            _ => match label.strip_prefix('P').filter(|rest| rest.len() == 1) {
                Some(face) => LoadOn::Faces(Faces::Of(elements, self.face(line, face)?)),
                None => {
                    let what = format!("load type {label} is not supported");
                    let error = self.source.error(line.place, what);
                    return Err(error.expected("P1 to P6, GRAV, CENTRIF, BX, BY or BZ"));
                }
            },
        };
        Ok((on, value))
    }

    /// The number of a face, from 0.
    fn face(&self, line: &Line<'_>, digit: &str) -> Result<u8> {
        match digit.as_bytes() {
            [digit @ b'1'..=b'6'] => Ok(digit - b'1'),
            _ => {
                let what = format!("`{digit}` is no face");
                Err(self
                    .source
                    .error(line.place, what)
                    .expected("a face from 1 to 6"))
            }
        }
    }

    /// Gives pressures that nodes stand for their values: those prescribed for degree of freedom 2 of the nodes.
    pub(super) fn settle_pressures(&mut self) -> Result<()> {
        for k in 0..self.state.loads.len() {
            let Some(node) = self.state.loads[k].of_node else {
                continue;
            };
            let is_it = |f: &&Fixed| f.dof == 2 && f.nodes == Nodes::Number(node);
            match self.state.fixed.iter().find(is_it).map(|f| f.value) {
                Some(value) => self.state.loads[k].value = value,
                None => {
                    let error = self.source.error(
                        self.state.loads[k].place,
                        format!("node {node} has no pressure"),
                    );
                    return Err(error.expected("a *BOUNDARY on its degree of freedom 2"));
                }
            }
        }
        Ok(())
    }

    pub(super) fn dsload(&mut self, card: &DeckCard) -> Result<()> {
        self.renew_loads(card, false)?;
        let factor = self.factor(card)?;
        let mut given = Vec::new();
        for data in &card.lines {
            let line = self.source.line(data);
            let name = line.get(0).unwrap_or_default();
            let name = self.source.set(SetKind::Surface, name, line.place)?;
            let faces = Faces::Surface(name);
            let value = self.source.number(&line, 2, "the size of the load")?;
            let on = match line
                .get(1)
                .unwrap_or_default()
                .to_ascii_uppercase()
                .as_str()
            {
                "P" => LoadOn::Faces(faces),
                "TRVEC" => {
                    let direction = self
                        .source
                        .vector(&line, 3, "the direction: three numbers")?;
                    LoadOn::Traction(faces, Direction(self.source.unit(direction, line.place)?))
                }
                label => {
                    let what = format!("load type {label} is not supported");
                    return Err(self.source.error(line.place, what).expected("P or TRVEC"));
                }
            };
            given.push(self.load(on, factor * value, line.place));
        }
        self.add_loads(given);
        Ok(())
    }

    pub(super) fn temperature(&mut self, card: &DeckCard) -> Result<()> {
        self.require_step(card)?;
        let factor = self.factor(card)?;
        if self.is_new(card)? && !self.renewed.temperature {
            self.renewed.temperature = true;
            self.state.temperatures.clear();
        }
        let mut given = Vec::new();
        for data in &card.lines {
            let line = self.source.line(data);
            let nodes = self.nodes_of(&line)?;
            let value = factor * self.source.number(&line, 1, "a temperature")?;
            self.at_most(&line, 2, "nodes and their temperature")?;
            given.push(Temperature {
                nodes,
                value,
                place: line.place,
            });
        }
        replace(&mut self.state.temperatures, given, |t| t.nodes.clone());
        Ok(())
    }

    pub(super) fn initial_conditions(&mut self, card: &DeckCard) -> Result<()> {
        let of_type = self.parameter(card, "TYPE")?.to_ascii_uppercase();
        if card.card.has_flag("USER") {
            let error = self.source.error(
                card.place,
                "initial conditions by a user subroutine are not supported",
            );
            return Err(error.advice("list the values in the deck"));
        }
        match of_type.replace(' ', "").as_str() {
            "TEMPERATURE" => self.initial_temperature(card),
            "STRESS" => self.initial_tensor(card, false),
            "PLASTICSTRAIN" => self.initial_tensor(card, true),
            _ => {
                let what = format!("*INITIAL CONDITIONS, TYPE={of_type} is not supported");
                let error = self.source.error(card.place, what);
                Err(error.expected("TYPE=TEMPERATURE, STRESS or PLASTIC STRAIN"))
            }
        }
    }

    fn initial_temperature(&mut self, card: &DeckCard) -> Result<()> {
        for data in &card.lines {
            let line = self.source.line(data);
            let nodes = self.nodes_of(&line)?;
            let value = self.source.number(&line, 1, "a temperature")?;
            self.at_most(&line, 2, "nodes and their temperature")?;
            let place = line.place;
            self.model.initial_temperatures.push(Temperature {
                nodes,
                value,
                place,
            });
        }
        Ok(())
    }

    fn initial_tensor(&mut self, card: &DeckCard, is_strain: bool) -> Result<()> {
        for data in &card.lines {
            let line = self.source.line(data);
            let element = self.source.whole(&line, 0, "the number of an element")?;
            let point = self
                .source
                .whole(&line, 1, "the number of an integration point")?;
            let mut value = [0.0; 6];
            for (i, component) in value.iter_mut().enumerate() {
                *component = self
                    .source
                    .number(&line, 2 + i, "components xx yy zz xy xz yz")?;
            }
            self.at_most(
                &line,
                8,
                "an element, an integration point and six components",
            )?;
            self.model.initial_tensors.push(InitialTensor {
                is_strain,
                element,
                point,
                value,
                place: line.place,
            });
        }
        Ok(())
    }
}

/// Adds items; each takes the place of earlier ones with its key.
fn replace<T, K: Eq + Hash>(items: &mut Vec<T>, given: Vec<T>, key: impl Fn(&T) -> K) {
    let mut seen = HashSet::new();
    let mut latest: Vec<T> = given
        .into_iter()
        .rev()
        .filter(|item| seen.insert(key(item)))
        .collect();
    latest.reverse();
    items.retain(|item| !seen.contains(&key(item)));
    items.extend(latest);
}
