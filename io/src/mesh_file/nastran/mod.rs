//! Nastran bulk data: the mesh of a deck.
//!
//! Read: GRID (with GRDSET and the systems CORD2R, CORD2C, CORD2S), CTETRA, CHEXA, CPENTA, CPYRAM, the shells that lie on
//! faces, INCLUDE. Property numbers become element sets `pid_N`. All else is counted and named in a warning.
//! Source: Nastran Quick Reference Guide.
//!
//! Invariant: reads no material, load or support.

mod entry;
mod systems;

use super::draft::{Draft, Place};
use super::include::Open;
use super::scan::{parse_float, parse_signed, parse_unsigned, shown, trim};
use super::solids::{
    HEX8, HEX20, IN_ORDER, MOST_NODES, Order, PYRAMID5, PYRAMID13, Solid, TET4, TET10,
    UPRIGHT_FIRST_HEX20, UPRIGHT_FIRST_WEDGE15, WEDGE6, WEDGE15,
};
use entry::{Entry, Line, split, without_tabs};
use fem_mesh::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use systems::{Definition, Kind, Systems};

/// Reads the bytes of the deck at `path`.
pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Draft> {
    let mut reader = Reader {
        draft: Draft::new(path.to_path_buf()),
        at: Place::default(),
        open: Open::default(),
        entry: None,
        spare: Entry::default(),
        systems: Systems::default(),
        own_systems: Vec::new(),
        default_system: None,
        ignored: BTreeMap::new(),
        skipped_elements: BTreeMap::new(),
        ended: false,
    };
    reader.read_file(0, bytes)?;
    reader.end_entry()?;
    reader.place_nodes()?;
    reader.warn_of_ignored();
    Ok(reader.draft)
}

struct Reader {
    draft: Draft,
    at: Place,
    open: Open,
    /// The entry begun, if it is one we read.
    entry: Option<Entry>,
    /// Its memory, between entries.
    spare: Entry,
    systems: Systems,
    /// Nodes given in a system other than the basic one: index and system (`None`: that of GRDSET).
    own_systems: Vec<(usize, Option<u64>)>,
    default_system: Option<u64>,
    /// Entries that are no part of the mesh, by name.
    ignored: BTreeMap<String, usize>,
    /// Elements that are no solids, by name.
    skipped_elements: BTreeMap<String, usize>,
    /// ENDDATA was read.
    ended: bool,
}

/// The two forms of each solid: without and with middle nodes.
static SOLIDS: [(&str, [(Solid, Order); 2]); 5] = [
    ("CTETRA", [(TET4, &IN_ORDER), (TET10, &IN_ORDER)]),
    ("CHEXA", [(HEX8, &IN_ORDER), (HEX20, &UPRIGHT_FIRST_HEX20)]),
    (
        "CPENTA",
        [(WEDGE6, &IN_ORDER), (WEDGE15, &UPRIGHT_FIRST_WEDGE15)],
    ),
    ("CPYRAM", [(PYRAMID5, &IN_ORDER), (PYRAMID13, &IN_ORDER)]),
    ("CPYRA", [(PYRAMID5, &IN_ORDER), (PYRAMID13, &IN_ORDER)]),
];

/// Shells and plane elements with their number of corners: they may lie on faces of solids.
const SURFACES: [(&str, usize); 10] = [
    ("CTRIA3", 3),
    ("CTRIA6", 3),
    ("CTRIAR", 3),
    ("CTRIAX6", 3),
    ("CQUAD4", 4),
    ("CQUAD8", 4),
    ("CQUADR", 4),
    ("CQUAD", 4),
    ("CSHEAR", 4),
    ("PLOTEL4", 4),
];

/// Elements that are neither; rigid ones join nodes, which we do not follow.
const OTHERS: [&str; 22] = [
    "CBAR", "CBEAM", "CBEND", "CBUSH", "CBUSH1D", "CDAMP1", "CDAMP2", "CELAS1", "CELAS2", "CFAST",
    "CGAP", "CMASS1", "CMASS2", "CONM1", "CONM2", "CONROD", "CROD", "CTUBE", "CWELD", "RBAR",
    "RBE2", "RBE3",
];

impl Reader {
    fn error(&self, error: Error) -> Error {
        self.draft.error_at(self.at, error)
    }

    fn read_file(&mut self, file: u16, bytes: &[u8]) -> Result<()> {
        self.open.enter(&self.draft.files[usize::from(file)]);
        let outer = std::mem::replace(&mut self.at, Place { file, line: 0 });
        let mut lines = bytes.split(|&b| b == b'\n');
        if file == 0 {
            self.skip_control(bytes, &mut lines);
        }
        while let Some(line) = lines.next() {
            self.at.line += 1;
            if self.ended {
                break;
            }
            let line = content(line);
            if trim(line).is_empty() {
                continue;
            }
            if line.len() >= 7 && line[..7].eq_ignore_ascii_case(b"INCLUDE") {
                self.include(&line[7..], &mut lines)?;
                continue;
            }
            let line = without_tabs(line);
            self.read_line(&line)?;
        }
        self.at = outer;
        self.open.leave();
        Ok(())
    }

    /// Passes the executive and case control sections, which end with BEGIN BULK; a file without it is bulk data.
    fn skip_control<'a>(&mut self, bytes: &'a [u8], lines: &mut impl Iterator<Item = &'a [u8]>) {
        let begins = |line: &[u8]| {
            let line = content(line);
            let mut words = line
                .split(|&b| b == b' ' || b == b'\t')
                .filter(|w| !w.is_empty());
            let first = words.next().unwrap_or_default();
            let second = words.next().map(trim).unwrap_or_default();
            first.eq_ignore_ascii_case(b"BEGIN") && second.eq_ignore_ascii_case(b"BULK")
        };
        if let Some(n) = bytes.split(|&b| b == b'\n').position(begins) {
            self.at.line += (n + 1) as u32;
            lines.nth(n);
        }
    }

    /// `INCLUDE 'name'`; the name may run over several lines until its closing quote.
    fn include<'a>(
        &mut self,
        start: &[u8],
        lines: &mut impl Iterator<Item = &'a [u8]>,
    ) -> Result<()> {
        let mut name = String::from_utf8_lossy(trim(start)).into_owned();
        let quote = name.chars().next().filter(|c| matches!(c, '\'' | '"'));
        if let Some(quote) = quote {
            while !name[1..].contains(quote) {
                let Some(line) = lines.next() else {
                    let error = Error::input(format!(
                        "the name of an included file has no closing {quote}"
                    ));
                    return Err(self.error(error));
                };
                self.at.line += 1;
                name.push_str(&String::from_utf8_lossy(trim(line)));
            }
            name = name[1..].split(quote).next().unwrap_or_default().to_owned();
        }
        let opened = self.open.include(&mut self.draft, self.at.file, &name);
        let (file, bytes) = opened.map_err(|error| match error.file() {
            Some(_) => error,
            None => self.error(error),
        })?;
        self.read_file(file, &bytes)
    }

    fn read_line(&mut self, line: &[u8]) -> Result<()> {
        match split(line).map_err(|error| self.error(error))? {
            Line::Start { name, fields } => {
                self.end_entry()?;
                if name == "ENDDATA" {
                    self.ended = true;
                } else if is_read(&name) {
                    let mut entry = std::mem::take(&mut self.spare);
                    entry.start(name, self.at);
                    entry.add(&fields).map_err(|error| self.error(error))?;
                    self.entry = Some(entry);
                } else {
                    self.ignore(name)?;
                }
            }
            Line::Continued(fields) => {
                if let Some(mut entry) = self.entry.take() {
                    entry.add(&fields).map_err(|error| self.error(error))?;
                    self.entry = Some(entry);
                }
            }
        }
        Ok(())
    }

    fn ignore(&mut self, name: String) -> Result<()> {
        if name.starts_with('=') {
            let error = Error::input("replicated entries (=) are not supported");
            return Err(self.error(error.advice("write the file with every entry in full")));
        }
        if name.starts_with("BEGIN") || name.starts_with("CORD1") {
            let name = name.split(' ').next().unwrap_or_default();
            let error = Error::input(format!("{name} is not supported"));
            return Err(self.error(error.expected(
                "one bulk data section, with coordinate systems CORD2R, CORD2C or CORD2S",
            )));
        }
        match self.ignored.get_mut(&name) {
            Some(count) => *count += 1,
            None => drop(self.ignored.insert(name, 1)),
        }
        Ok(())
    }

    /// Takes the entry begun into the mesh.
    fn end_entry(&mut self) -> Result<()> {
        let Some(entry) = self.entry.take() else {
            return Ok(());
        };
        self.read_entry(&entry)
            .map_err(|error| self.draft.error_at(entry.place, error))?;
        self.spare = entry;
        Ok(())
    }

    fn read_entry(&mut self, entry: &Entry) -> Result<()> {
        match entry.name.as_str() {
            "GRID" => self.read_node(entry),
            "GRDSET" => {
                self.default_system = optional_id(entry, 1, "the coordinate system CP")?;
                Ok(())
            }
            "CORD2R" => self.read_system(entry, Kind::Rectangular),
            "CORD2C" => self.read_system(entry, Kind::Cylindrical),
            "CORD2S" => self.read_system(entry, Kind::Spherical),
            name => match SOLIDS.iter().find(|(n, _)| *n == name) {
                Some((_, forms)) => self.read_solid(entry, forms),
                None => self.read_other(entry),
            },
        }
    }

    fn read_node(&mut self, entry: &Entry) -> Result<()> {
        let id = required_id(entry, 0, "the number of a GRID")?;
        let coords = point(entry, 2)?;
        // A blank field means the system of GRDSET, wherever that stands; 0 is the basic one.
        let system = optional_id(entry, 1, "the coordinate system CP")?;
        if system != Some(0) {
            self.own_systems.push((self.draft.nodes.ids.len(), system));
        }
        // The displacement system has no meaning for the mesh; but what is no number here is the end of a coordinate
        // that stands in the wrong columns.
        let system = entry.field(5);
        if !system.is_empty() && parse_signed(system).is_none() {
            let error = Error::input(format!("not a whole number: `{}`", shown(system)));
            return Err(
                error.expected("the coordinate system CD, or blank, behind the coordinates")
            );
        }
        self.draft.nodes.push(id, coords, entry.place);
        Ok(())
    }

    fn read_system(&mut self, entry: &Entry, kind: Kind) -> Result<()> {
        let id = required_id(entry, 0, "the number of a coordinate system")?;
        let reference = optional_id(entry, 1, "the reference system RID")?.unwrap_or(0);
        let points = [point(entry, 2)?, point(entry, 5)?, point(entry, 8)?];
        let definition = Definition {
            kind,
            reference,
            points,
            place: entry.place,
        };
        self.systems.define(id, definition);
        Ok(())
    }

    fn read_solid(&mut self, entry: &Entry, forms: &[(Solid, Order); 2]) -> Result<()> {
        let id = required_id(entry, 0, "the number of an element")?;
        let property = optional_id(entry, 1, "the property number PID")?.unwrap_or(id);
        let [(linear, _), (second, _)] = forms;
        let mut nodes = [0; MOST_NODES];
        let mut given = [false; MOST_NODES];
        // Fields behind the last node hold what is no mesh, such as CORDM of newer versions.
        for k in 0..second.n_nodes {
            if let Some(node) =
                optional_id(entry, k + 2, "the number of a node")?.filter(|&n| n > 0)
            {
                (nodes[k], given[k]) = (node, true);
            }
        }
        let n_given = given.iter().filter(|&&g| g).count();
        let whole = |n: usize| n_given == n && given[..n].iter().all(|&g| g);
        let Some(&(solid, order)) = forms.iter().find(|(solid, _)| whole(solid.n_nodes)) else {
            return Err(Error::input(format!("{} {id} has {n_given} nodes", entry.name))
                .expected(format!(
                    "{} corner nodes, and none or all of the {} middle nodes",
                    linear.n_nodes,
                    second.n_nodes - linear.n_nodes
                ))
                .advice("the file may be cut off, or the element have middle nodes on some edges only"));
        };
        self.draft
            .push_solid(solid, order, id, &nodes[..solid.n_nodes], entry.place);
        self.add_to_property(property, id);
        Ok(())
    }

    fn read_other(&mut self, entry: &Entry) -> Result<()> {
        let id = required_id(entry, 0, "the number of an element")?;
        match self.skipped_elements.get_mut(&entry.name) {
            Some(count) => *count += 1,
            None => drop(self.skipped_elements.insert(entry.name.clone(), 1)),
        }
        let n_corners = SURFACES.iter().find(|(name, _)| *name == entry.name);
        let Some(&(_, n_corners)) = n_corners else {
            self.draft.push_other(id, &[]);
            return Ok(());
        };
        let property = optional_id(entry, 1, "the property number PID")?.unwrap_or(id);
        let mut corners = [0; 4];
        for (k, corner) in corners[..n_corners].iter_mut().enumerate() {
            *corner = required_id(entry, k + 2, "the number of a node")?;
        }
        self.draft.push_other(id, &corners[..n_corners]);
        self.add_to_property(property, id);
        Ok(())
    }

    fn add_to_property(&mut self, property: u64, element: u64) {
        let set = self.draft.cell_sets.entry(format!("pid_{property}"));
        set.or_default().ids.push(element);
    }

    /// Brings nodes of other coordinate systems to the basic one.
    fn place_nodes(&mut self) -> Result<()> {
        for (node, system) in std::mem::take(&mut self.own_systems) {
            let system = system.or(self.default_system).unwrap_or(0);
            let nodes = &mut self.draft.nodes;
            match self.systems.in_basic(system, nodes.coords[node]) {
                Ok(coords) if coords.iter().all(|x| x.is_finite()) => nodes.coords[node] = coords,
                Ok(_) => {
                    let error =
                        Error::input(format!("node {} lies infinitely far away", nodes.ids[node]));
                    return Err(self.draft.error_at(self.draft.nodes.places[node], error));
                }
                Err((place, error)) => {
                    let place = place.unwrap_or(nodes.places[node]);
                    return Err(self.draft.error_at(place, error));
                }
            }
        }
        Ok(())
    }

    fn warn_of_ignored(&mut self) {
        let counted = |counts: &BTreeMap<String, usize>| -> String {
            const SHOWN: usize = 12;
            let shown: Vec<String> = (counts.iter().take(SHOWN))
                .map(|(name, n)| format!("{n} {}", shown(name.as_bytes())))
                .collect();
            match counts.len().saturating_sub(SHOWN) {
                0 => shown.join(", "),
                n => format!("{} and {n} more kinds", shown.join(", ")),
            }
        };
        if !self.skipped_elements.is_empty() {
            self.draft.warnings.push(format!(
                "elements that are no solids add no stiffness (sets of surface elements stand for faces): {}",
                counted(&self.skipped_elements)
            ));
        }
        if !self.ignored.is_empty() {
            self.draft.warnings.push(format!(
                "only the mesh of the deck is read; ignored: {}",
                counted(&self.ignored)
            ));
        }
    }
}

/// The line without its comment and line end.
fn content(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|&b| b == b'$').unwrap_or(line.len());
    let end = line[..end]
        .iter()
        .rposition(|b| !matches!(b, b'\r' | b' ' | 0x1a))
        .map_or(0, |k| k + 1);
    &line[..end]
}

/// Whether entries of that name are part of the mesh.
fn is_read(name: &str) -> bool {
    matches!(name, "GRID" | "GRDSET" | "CORD2R" | "CORD2C" | "CORD2S")
        || SOLIDS.iter().any(|(n, _)| *n == name)
        || SURFACES.iter().any(|(n, _)| *n == name)
        || OTHERS.contains(&name)
}

fn optional_id(entry: &Entry, k: usize, what: &str) -> Result<Option<u64>> {
    let field = entry.field(k);
    if field.is_empty() {
        return Ok(None);
    }
    parse_unsigned(field).map(Some).ok_or_else(|| {
        Error::input(format!("not a whole number: `{}`", shown(field))).expected(what)
    })
}

fn required_id(entry: &Entry, k: usize, what: &str) -> Result<u64> {
    optional_id(entry, k, what)?.ok_or_else(|| {
        Error::input(format!("field {} of {} is blank", k + 2, entry.name)).expected(what)
    })
}

/// Three numbers from field `k` on; blank is 0.
fn point(entry: &Entry, k: usize) -> Result<[f64; 3]> {
    let mut point = [0.0; 3];
    for (axis, x) in point.iter_mut().enumerate() {
        let field = entry.field(k + axis);
        if !field.is_empty() {
            *x = parse_float(field).ok_or_else(|| {
                Error::input(format!("not a number: `{}`", shown(field))).expected(format!(
                    "coordinate {} of {}",
                    axis + 1,
                    entry.name
                ))
            })?;
        }
    }
    Ok(point)
}

#[cfg(test)]
mod tests;
