//! Data lines of a deck: what they mean below each keyword.
//!
//! Invariant: reads data lines only; keyword lines are read in `mod.rs`.

use super::super::draft::{Draft, Facet, IdSet, Place};
use super::super::scan::{parse_float, parse_unsigned, shown, trim};
use super::Reader;
use super::card::unquoted;
use super::element_types::{Kind, is_plane};
use super::sets::SetKind;
use fem_mesh::{CellType, Error, Result};

/// What the data lines that follow mean.
#[derive(Debug)]
pub(super) enum Block {
    /// Nothing to us.
    Skip,
    /// Data of a card that is not of the mesh.
    Card,
    /// `number, x, y, z`; nodes from index `first` on also belong to `set`.
    Nodes { set: Option<String>, first: usize },
    /// `number, node, node, ...`, over several lines if need be.
    Solids(Solids),
    /// Elements that are no solids; `n_corners` is 0 where they cannot lie on a face of one.
    Others {
        name: String,
        n_corners: usize,
        set: Option<String>,
        first: usize,
        continues: bool,
    },
    /// Members of a set.
    Set {
        kind: SetKind,
        name: String,
        generate: bool,
    },
    /// `element or element set, face`.
    Surface { name: String },
    /// The place of an instance.
    Instance { name: String },
}

/// Solids being read.
#[derive(Debug)]
pub(super) struct Solids {
    /// Name in the deck.
    name: String,
    /// `None` for a type that we do not know.
    cell_type: Option<CellType>,
    n_nodes: usize,
    set: Option<String>,
    /// The first solid of the block, and the first other element.
    first: (usize, usize),
    /// The element begun but not complete.
    begun: Option<(u64, Place)>,
    nodes: Vec<u64>,
}

impl Block {
    pub(super) fn elements(name: String, kind: Kind, set: Option<String>, draft: &Draft) -> Block {
        let first = (draft.solids.ids.len(), draft.other_elements.len());
        let (cell_type, n_nodes) = match kind {
            Kind::Solid { cell_type, .. } => (Some(cell_type), cell_type.n_nodes()),
            Kind::Unsupported(n_nodes) if n_nodes > 0 => (None, n_nodes),
            _ => {
                let n_corners = match kind {
                    Kind::Surface(n_corners) => n_corners,
                    _ => 0,
                };
                return Block::Others {
                    name,
                    n_corners,
                    set,
                    first: first.1,
                    continues: false,
                };
            }
        };
        Block::Solids(Solids {
            name,
            cell_type,
            n_nodes,
            set,
            first,
            begun: None,
            nodes: Vec::new(),
        })
    }
}

impl Reader {
    /// Ends the current block: an element begun must be complete, and its set gets its members.
    pub(super) fn close_block(&mut self) -> Result<()> {
        let draft = &mut self.draft;
        match std::mem::replace(&mut self.block, Block::Skip) {
            Block::Nodes {
                set: Some(set),
                first,
            } => {
                let ids = &draft.nodes.ids[first..];
                draft
                    .node_sets
                    .entry(set)
                    .or_default()
                    .ids
                    .extend_from_slice(ids);
            }
            Block::Solids(block) => {
                if let Some((id, place)) = block.begun {
                    return Err(self.draft.error_at(place, incomplete(id, &block)));
                }
                if let Some(set) = block.set {
                    let set = draft.cell_sets.entry(set).or_default();
                    set.ids
                        .extend_from_slice(&draft.solids.ids[block.first.0..]);
                    set.ids
                        .extend_from_slice(&draft.other_elements[block.first.1..]);
                }
            }
            Block::Others {
                set: Some(set),
                first,
                ..
            } => {
                let ids = &draft.other_elements[first..];
                draft
                    .cell_sets
                    .entry(set)
                    .or_default()
                    .ids
                    .extend_from_slice(ids);
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads one data line.
    pub(super) fn read_data(&mut self, line: &[u8]) -> Result<()> {
        let mut block = std::mem::replace(&mut self.block, Block::Skip);
        let read = match &mut block {
            Block::Skip => Ok(()),
            Block::Card => {
                self.keep_line(line);
                Ok(())
            }
            Block::Nodes { .. } => self.read_node(line),
            Block::Solids(solids) => self.read_solid(line, solids),
            Block::Others {
                name,
                n_corners,
                continues,
                ..
            } => {
                if !*continues {
                    self.read_other(line, name, *n_corners);
                }
                *continues = line.ends_with(b",");
                Ok(())
            }
            Block::Set {
                kind,
                name,
                generate: true,
            } => self.read_range(line, *kind, name),
            Block::Set {
                kind,
                name,
                generate: false,
            } => self.read_members(line, *kind, name),
            Block::Surface { name } => self.read_face(line, name),
            Block::Instance { name } => self.read_placement(line, name),
        };
        self.block = block;
        read
    }

    fn read_node(&mut self, line: &[u8]) -> Result<()> {
        const MOST_FIELDS: usize = 7; // The three after the coordinates are a normal.
        let mut fields = fields(line);
        let id = self.unsigned(fields.next().unwrap_or_default(), "the number of a node")?;
        let mut coords = [0.0; 3];
        for (coordinate, name) in coords.iter_mut().zip(["x", "y", "z"]) {
            match fields.next() {
                None => break,
                Some(b"") => {}
                Some(field) => {
                    *coordinate = parse_float(field).ok_or_else(|| {
                        let error = Error::input(format!("not a number: `{}`", shown(field)));
                        self.error(error.expected(format!("coordinate {name} of node {id}")))
                    })?;
                }
            }
        }
        if fields.count() > MOST_FIELDS - 4 {
            return Err(
                self.error(Error::input("too many fields").expected("a node: number, x, y, z"))
            );
        }
        self.draft.nodes.push(id, coords, self.at);
        Ok(())
    }

    fn read_solid(&mut self, line: &[u8], block: &mut Solids) -> Result<()> {
        let mut fields = fields(line);
        let (id, place) = match block.begun {
            Some(begun) => begun,
            None => {
                let id = self.unsigned(
                    fields.next().unwrap_or_default(),
                    "the number of an element",
                )?;
                (id, self.at)
            }
        };
        for field in fields {
            let node = self.unsigned(field, "the number of a node")?;
            block.nodes.push(node);
        }
        block.begun = Some((id, place));
        if block.nodes.len() > block.n_nodes {
            return Err(self.draft.error_at(place, incomplete(id, block)));
        }
        if block.nodes.len() == block.n_nodes {
            match block.cell_type {
                Some(cell_type) => {
                    self.draft
                        .solids
                        .push(cell_type, id, block.nodes.drain(..), place)
                }
                None => {
                    block.nodes.clear();
                    self.draft.note_unsupported(&block.name, place);
                    self.draft.other_elements.push(id);
                }
            }
            block.begun = None;
        }
        Ok(())
    }

    /// Takes the first line of an element that is no solid.
    fn read_other(&mut self, line: &[u8], name: &str, n_corners: usize) {
        let mut numbers = fields(line).map_while(parse_unsigned);
        if let Some(id) = numbers.next() {
            self.draft.other_elements.push(id);
            let mut corners = [0; 4];
            let n_found = corners
                .iter_mut()
                .zip(numbers)
                .map(|(slot, node)| *slot = node)
                .count();
            if n_corners > 0 && n_found >= n_corners {
                let facet = Facet::new(&corners[..n_corners]);
                self.draft.surface_elements.push((id, facet));
                if is_plane(name) {
                    return;
                }
            }
        }
        match self.skipped_elements.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.skipped_elements.insert(name.to_owned(), 1)),
        }
    }

    /// `first, last, step`; a step left out is 1.
    fn read_range(&mut self, line: &[u8], kind: SetKind, name: &str) -> Result<()> {
        let mut numbers = [0, 0, 1];
        let mut n_fields = 0;
        for field in fields(line) {
            let Some(slot) = numbers.get_mut(n_fields) else {
                return Err(
                    self.error(Error::input("too many fields").expected("first, last, step"))
                );
            };
            if !field.is_empty() {
                *slot = self.unsigned(field, "first, last, step")?;
            }
            n_fields += 1;
        }
        let [first, last, step] = numbers;
        if n_fields < 2 || last < first || step == 0 {
            let error = Error::input(format!("not a range: `{}`", shown(line)));
            return Err(self.error(
                error.expected("first, last, step with last not below first and step from 1"),
            ));
        }
        self.members_of(kind, name).ranges.push((first, last, step));
        Ok(())
    }

    /// Numbers, and names of sets defined before.
    fn read_members(&mut self, line: &[u8], kind: SetKind, name: &str) -> Result<()> {
        for field in fields(line).filter(|field| !field.is_empty()) {
            if let Some(id) = self.member(field) {
                self.members_of(kind, name).ids.push(id);
            } else {
                let other = String::from_utf8_lossy(field);
                let other = self.find(kind, unquoted(&other))?.clone();
                self.members_of(kind, name).extend(&other);
            }
        }
        Ok(())
    }

    fn members_of(&mut self, kind: SetKind, name: &str) -> &mut IdSet {
        let draft = &mut self.draft;
        let sets = if kind == SetKind::Node {
            &mut draft.node_sets
        } else {
            &mut draft.cell_sets
        };
        sets.entry(name.to_owned()).or_default()
    }

    /// A number, or `Instance.number`.
    fn member(&self, field: &[u8]) -> Option<u64> {
        parse_unsigned(field).or_else(|| {
            let instance = self.instance.as_deref()?.as_bytes();
            let (prefix, rest) = field.split_at_checked(instance.len())?;
            let rest = rest.strip_prefix(b".")?;
            prefix
                .eq_ignore_ascii_case(instance)
                .then(|| parse_unsigned(rest))?
        })
    }

    fn read_face(&mut self, line: &[u8], name: &str) -> Result<()> {
        let mut fields = fields(line);
        let of = fields.next().unwrap_or_default();
        let label = fields.next().unwrap_or_default();
        let face = match label {
            [b'S' | b's', digit @ b'1'..=b'9'] => digit - b'1',
            _ => {
                let error = Error::input(format!(
                    "surface `{name}`: `{}` is no face of a solid",
                    shown(label)
                ));
                return Err(
                    self.error(error.expected("an element or element set and a face, S1 to S6"))
                );
            }
        };
        let members = match self.member(of) {
            Some(id) => IdSet {
                ids: vec![id],
                ranges: Vec::new(),
            },
            None => self
                .find(SetKind::Element, unquoted(&String::from_utf8_lossy(of)))?
                .clone(),
        };
        let at = self.at;
        let faces = self.draft.face_sets.entry(name.to_owned()).or_default();
        match faces.of_elements.last_mut() {
            Some((last, of_last, _))
                if *of_last == face && last.ranges.is_empty() && members.ranges.is_empty() =>
            {
                last.ids.extend(members.ids);
            }
            _ => faces.of_elements.push((members, face, at)),
        }
        Ok(())
    }

    /// A translation, or on a second line a rotation: only none at all is followed.
    fn read_placement(&mut self, line: &[u8], name: &str) -> Result<()> {
        let moved = fields(line)
            .filter(|f| !f.is_empty())
            .any(|f| parse_float(f) != Some(0.0));
        if moved {
            let error = Error::input(format!(
                "instance `{name}` is moved or rotated, which is not supported"
            ));
            return Err(self.error(error.advice("write a flat deck, without parts and instances")));
        }
        Ok(())
    }

    fn unsigned(&self, field: &[u8], what: &str) -> Result<u64> {
        parse_unsigned(field).ok_or_else(|| {
            self.error(
                Error::input(format!("not a whole number: `{}`", shown(field))).expected(what),
            )
        })
    }
}

fn incomplete(id: u64, block: &Solids) -> Error {
    Error::input(format!("element {id} has {} nodes", block.nodes.len()))
        .expected(format!(
            "{} nodes for an element of type {}",
            block.n_nodes, block.name
        ))
        .advice("the file may be cut off, or a line be missing")
}

/// The fields of a data line without blanks around them; a comma at its end starts no field.
fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.strip_suffix(b",")
        .unwrap_or(line)
        .split(|&b| b == b',')
        .map(trim)
}
