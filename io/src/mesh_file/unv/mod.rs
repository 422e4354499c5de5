//! I-DEAS universal files, `.unv`: the mesh and its groups.
//!
//! Read: datasets 15, 781 and 2411 (nodes), 780 and 2412 (elements), 2420 (coordinate systems, of which only the global
//! one may be used) and the groups of 2467, 2477, 2452, 2435, 2432, 2430 and 2429. Property numbers become element sets
//! `pid_N`. Other datasets are named in a warning; units (164) are not converted.
//! Source: "Universal file formats for modal analysis testing" of the University of Cincinnati, and the I-DEAS manual
//! of these datasets.
//!
//! Invariant: reads no result, material or load.

use super::draft::{Draft, Place};
use super::scan::{parse_float, parse_signed, parse_unsigned, readable, shown, trim};
use super::solids::{
    AROUND_HEX20, AROUND_TET10, AROUND_WEDGE15, HEX8, HEX20, IN_ORDER, Order, Solid, TET4, TET10,
    WEDGE6, WEDGE15,
};
use fem_mesh::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reads the bytes of the file at `path`.
pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Draft> {
    let mut reader = Reader {
        draft: Draft::new(path.to_path_buf()),
        rest: bytes,
        line: 0,
        systems: BTreeMap::new(),
        used_systems: BTreeMap::new(),
        ignored: BTreeMap::new(),
        skipped_elements: 0,
        other_members: BTreeMap::new(),
    };
    reader.read_datasets()?;
    reader.check_systems()?;
    reader.warn_of_ignored();
    Ok(reader.draft)
}

struct Reader<'a> {
    draft: Draft,
    rest: &'a [u8],
    /// Number of the line read last.
    line: usize,
    /// Whether each coordinate system is the global one.
    systems: BTreeMap<u64, bool>,
    /// The systems that nodes name, with the first place.
    used_systems: BTreeMap<u64, Place>,
    /// Datasets that are no part of the mesh.
    ignored: BTreeMap<String, usize>,
    skipped_elements: usize,
    /// Members of groups that are neither nodes nor elements, by group.
    other_members: BTreeMap<String, usize>,
}

/// Solids by their type number; the nodes of second-order ones go around each layer.
static SOLIDS: [(u64, Solid, Order); 6] = [
    (111, TET4, &IN_ORDER),
    (112, WEDGE6, &IN_ORDER),
    (113, WEDGE15, &AROUND_WEDGE15),
    (115, HEX8, &IN_ORDER),
    (116, HEX20, &AROUND_HEX20),
    (118, TET10, &AROUND_TET10),
];

/// Head of an element.
struct ElementHead {
    id: u64,
    kind: u64,
    property: u64,
    n_nodes: usize,
}

impl<'a> Reader<'a> {
    fn place(&self) -> Place {
        Place {
            file: 0,
            line: u32::try_from(self.line).unwrap_or(0),
        }
    }

    fn error(&self, error: Error) -> Error {
        self.draft.error_at(self.place(), error)
    }

    /// The next line without blanks at its ends, whatever it holds.
    fn any_line(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let length = self.rest.iter().position(|&b| b == b'\n');
        let line = trim(&self.rest[..length.unwrap_or(self.rest.len())]);
        self.rest = &self.rest[length.map_or(self.rest.len(), |n| n + 1)..];
        self.line += 1;
        Some(line)
    }

    /// The next line of the dataset that is not blank; `None`, left in place, at its end `-1`.
    fn line_of_dataset(&mut self, dataset: &str) -> Result<Option<&'a [u8]>> {
        loop {
            let before = (self.rest, self.line);
            match self.any_line() {
                Some(b"") => {}
                Some(b"-1") => {
                    (self.rest, self.line) = before;
                    return Ok(None);
                }
                Some(line) => return Ok(Some(line)),
                None => return Err(self.cut_off(dataset)),
            }
        }
    }

    /// A line that must follow.
    fn required_line(&mut self, dataset: &str, what: &str) -> Result<&'a [u8]> {
        match self.line_of_dataset(dataset)? {
            Some(line) => Ok(line),
            None => {
                let error = Error::input(format!("dataset {dataset} ends too early"));
                Err(self.error(error.expected(what)))
            }
        }
    }

    fn cut_off(&self, dataset: &str) -> Error {
        let error = Error::input(format!("the file ends inside dataset {dataset}"));
        self.error(error.advice("it may be cut off: write it again"))
    }

    fn read_datasets(&mut self) -> Result<()> {
        while let Some(line) = self.any_line() {
            if line.is_empty() {
                continue;
            }
            if line != b"-1" {
                let error = Error::input(format!("`{}` between datasets", shown(line)));
                return Err(self.error(error.expected("`-1`, which starts a dataset")));
            }
            let Some(head) = self.any_line() else {
                break; // a `-1` too many at the end
            };
            let number = head
                .split(|b| b.is_ascii_whitespace())
                .next()
                .unwrap_or_default();
            let dataset = shown(number);
            match dataset.as_str() {
                "15" => self.read_nodes(&dataset, true)?,
                "781" | "2411" => self.read_nodes(&dataset, false)?,
                "780" | "2412" => self.read_elements(&dataset)?,
                "2420" => self.read_systems(&dataset)?,
                "2467" | "2477" | "2452" | "2435" => self.read_groups(&dataset, 4)?,
                "2432" | "2430" | "2429" => self.read_groups(&dataset, 2)?,
                _ => {
                    // Units and heads are in nearly every file and mean nothing to a mesh.
                    if !matches!(dataset.as_str(), "151" | "164") {
                        *self.ignored.entry(dataset.clone()).or_default() += 1;
                    }
                    while self.line_of_dataset(&dataset)?.is_some() {}
                }
            }
            if self.any_line() != Some(b"-1") {
                return Err(self.cut_off(&dataset));
            }
        }
        Ok(())
    }

    /// `label, system, system, color`, then `x y z` on the same line or the next.
    fn read_nodes(&mut self, dataset: &str, one_line: bool) -> Result<()> {
        while let Some(head) = self.line_of_dataset(dataset)? {
            let place = self.place();
            let mut fields = fields(head);
            let id = self.unsigned(fields.next(), "the number of a node")?;
            let system = self.unsigned(fields.next(), "a coordinate system")?;
            self.used_systems.entry(system).or_insert(place);
            let coords = if one_line {
                self.coords(fields.skip(2))?
            } else {
                let line = self.required_line(dataset, "coordinates x y z")?;
                self.coords(self::fields(line))?
            };
            self.draft.nodes.push(id, coords, place);
        }
        Ok(())
    }

    fn coords<'b>(&self, mut fields: impl Iterator<Item = &'b [u8]>) -> Result<[f64; 3]> {
        let mut coords = [0.0; 3];
        for (x, name) in coords.iter_mut().zip(["x", "y", "z"]) {
            let field = fields.next().unwrap_or_default();
            *x = parse_float(field).ok_or_else(|| {
                let error = Error::input(format!("not a number: `{}`", shown(field)));
                self.error(error.expected(format!("coordinate {name}")))
            })?;
        }
        Ok(coords)
    }

    fn read_elements(&mut self, dataset: &str) -> Result<()> {
        let mut nodes = Vec::new();
        while let Some(line) = self.line_of_dataset(dataset)? {
            let place = self.place();
            let head = self.read_element_head(line, dataset)?;
            self.pass_beam_line(&head, dataset)?;
            nodes.clear();
            while nodes.len() < head.n_nodes {
                let what = format!("{} nodes of element {}", head.n_nodes, head.id);
                let line = self.required_line(dataset, &what)?;
                for field in fields(line) {
                    nodes.push(self.unsigned(Some(field), &what)?);
                }
                if nodes.len() > head.n_nodes {
                    let error =
                        Error::input(format!("{} nodes of element {}", nodes.len(), head.id));
                    return Err(self.error(error.expected(what)));
                }
            }
            self.take_element(&head, &nodes, place)?;
        }
        Ok(())
    }

    /// `label, type, property, material, color, nodes`; dataset 780 numbers tables of properties and materials, too.
    fn read_element_head(&self, line: &[u8], dataset: &str) -> Result<ElementHead> {
        let numbers: Vec<&[u8]> = fields(line).collect();
        let (property, n_nodes) = if dataset == "780" { (3, 7) } else { (2, 5) };
        let get = |k: usize, what: &str| self.unsigned(numbers.get(k).copied(), what);
        let n_nodes = get(n_nodes, "the number of nodes of an element")?;
        Ok(ElementHead {
            id: get(0, "the number of an element")?,
            kind: get(1, "the type of an element")?,
            property: get(property, "the property number of an element")?,
            n_nodes: usize::try_from(n_nodes).unwrap_or(usize::MAX),
        })
    }

    /// Beams have a line on their sections first. Some programs leave it out for rods.
    fn pass_beam_line(&mut self, head: &ElementHead, dataset: &str) -> Result<()> {
        if !matches!(head.kind, 11 | 21..=24) {
            return Ok(());
        }
        let before = (self.rest, self.line);
        let line = self.required_line(dataset, "the sections of a beam")?;
        if head.n_nodes == 2 && fields(line).count() == 2 {
            (self.rest, self.line) = before;
        }
        Ok(())
    }

    fn take_element(&mut self, head: &ElementHead, nodes: &[u64], place: Place) -> Result<()> {
        let of_set = match head.kind {
            111..=118 | 300.. => {
                match SOLIDS.iter().find(|(kind, ..)| *kind == head.kind) {
                    Some(&(_, solid, order)) if solid.n_nodes == nodes.len() => {
                        self.draft.push_solid(solid, order, head.id, nodes, place);
                    }
                    Some((_, solid, _)) => {
                        let error =
                            Error::input(format!("element {} has {} nodes", head.id, nodes.len()));
                        let expected = format!(
                            "{} nodes for an element of type {}",
                            solid.n_nodes, head.kind
                        );
                        return Err(self.draft.error_at(place, error.expected(expected)));
                    }
                    None => {
                        let name = format!("I-DEAS type {}", head.kind);
                        self.draft.note_unsupported(&name, place);
                        self.draft.push_other(head.id, &[]);
                    }
                }
                true
            }
            // Plane elements, plates, membranes and shells; nodes of second-order ones go around.
            41..=99 => {
                let every =
                    |step: usize| -> Vec<u64> { nodes.iter().copied().step_by(step).collect() };
                let corners = match nodes.len() {
                    3 | 4 => every(1),
                    6 | 8 => every(2),
                    _ => Vec::new(),
                };
                self.skipped_elements += usize::from(corners.is_empty());
                self.draft.push_other(head.id, &corners);
                true
            }
            _ => {
                self.skipped_elements += 1;
                self.draft.push_other(head.id, &[]);
                false
            }
        };
        if of_set {
            let set = self.draft.cell_sets.entry(format!("pid_{}", head.property));
            set.or_default().ids.push(head.id);
        }
        Ok(())
    }

    /// `part`, its name, then for each system `label, type, color`, name, three axes and the origin.
    fn read_systems(&mut self, dataset: &str) -> Result<()> {
        if self.line_of_dataset(dataset)?.is_none() || self.line_of_dataset(dataset)?.is_none() {
            return Ok(());
        }
        while let Some(head) = self.line_of_dataset(dataset)? {
            let mut fields = fields(head);
            let label = self.unsigned(fields.next(), "the number of a coordinate system")?;
            let kind = self.unsigned(fields.next(), "the type of a coordinate system")?;
            self.any_line(); // its name
            let mut rows = [[0.0; 3]; 4];
            for row in &mut rows {
                let line = self.required_line(dataset, "the axes and the origin of a system")?;
                *row = self.coords(self::fields(line))?;
            }
            let mut global = [[0.0; 3]; 4];
            (0..3).for_each(|k| global[k][k] = 1.0);
            self.systems.insert(label, kind == 0 && rows == global);
        }
        Ok(())
    }

    fn check_systems(&self) -> Result<()> {
        for (system, &place) in &self.used_systems {
            if self.systems.get(system) == Some(&false) {
                let error = Error::input(format!("nodes in the local coordinate system {system}"));
                let error = error.expected("coordinates in the global Cartesian system");
                return Err(self.draft.error_at(place, error));
            }
        }
        Ok(())
    }

    /// Groups: `number, ..., count` (the eighth number), a name, then `per_member` numbers for each member, of which the
    /// first is its kind and the second its number.
    fn read_groups(&mut self, dataset: &str, per_member: usize) -> Result<()> {
        const NODE: i64 = 7;
        const ELEMENT: i64 = 8;
        while let Some(head) = self.line_of_dataset(dataset)? {
            let fields: Vec<&[u8]> = fields(head).collect();
            let number = self.unsigned(fields.first().copied(), "the number of a group")?;
            let count =
                self.unsigned(fields.last().copied(), "the number of members of a group")?;
            let name = match self.any_line() {
                Some(b"") => format!("group_{number}"),
                Some(b"-1") | None => return Err(self.cut_off(dataset)),
                Some(name) => readable(name),
            };
            let mut members: Vec<i64> = Vec::new();
            while ((members.len() / per_member) as u64) < count {
                let what = format!("{count} members of group `{name}`");
                let line = self.required_line(dataset, &what)?;
                for field in self::fields(line) {
                    let number = parse_signed(field).ok_or_else(|| {
                        let error = Error::input(format!("not a whole number: `{}`", shown(field)));
                        self.error(error.expected(what.as_str()))
                    })?;
                    members.push(number);
                }
            }
            let mut kinds = BTreeSet::new();
            for member in members.chunks_exact(per_member) {
                let (kind @ 1.., Ok(id)) = (member[0], u64::try_from(member[1])) else {
                    continue; // padding
                };
                let sets = match kind {
                    NODE => &mut self.draft.node_sets,
                    ELEMENT => &mut self.draft.cell_sets,
                    _ => {
                        *self.other_members.entry(name.clone()).or_default() += 1;
                        continue;
                    }
                };
                kinds.insert(kind);
                sets.entry(name.clone()).or_default().ids.push(id);
            }
            if kinds.is_empty() {
                self.draft.cell_sets.entry(name).or_default();
            }
        }
        Ok(())
    }

    fn unsigned(&self, field: Option<&[u8]>, what: &str) -> Result<u64> {
        let field = field.unwrap_or_default();
        parse_unsigned(field).ok_or_else(|| {
            let error = Error::input(format!("not a whole number: `{}`", shown(field)));
            self.error(error.expected(what))
        })
    }

    fn warn_of_ignored(&mut self) {
        let warnings = &mut self.draft.warnings;
        if self.skipped_elements > 0 {
            let n = self.skipped_elements;
            warnings.push(format!(
                "{n} elements that are neither solids nor surface elements, ignored"
            ));
        }
        for (name, n) in &self.other_members {
            warnings.push(format!(
                "group `{name}`: {n} members are neither nodes nor elements, ignored"
            ));
        }
        if !self.ignored.is_empty() {
            let names: Vec<&str> = self.ignored.keys().map(String::as_str).take(12).collect();
            warnings.push(format!(
                "only the mesh is read; ignored: datasets {}",
                names.join(", ")
            ));
        }
    }
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| b.is_ascii_whitespace())
        .filter(|f| !f.is_empty())
}

#[cfg(test)]
mod tests;
