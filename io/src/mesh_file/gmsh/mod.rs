//! Gmsh `.msh`, formats 2.x and 4.1, ASCII and binary of either byte order.
//!
//! This file holds what the two share: the header, the loop over sections, physical names and the groups that become
//! sets. `v2.rs` and `v4.rs` hold nodes and elements; `source.rs` lets them read text and binary alike.
//! Source: Gmsh reference manual, chapter "Gmsh file formats".
//!
//! Invariant: fills a draft and checks no more than it needs to read on.

pub(super) mod element_types;
mod source;
mod v2;
mod v4;

use super::draft::{Draft, DraftFaces, Facet, Place};
use super::scan::{Scanner, shown};
use element_types::ElementType;
use fem_mesh::{Error, Result};
use source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reads the bytes of the file at `path`.
pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Draft> {
    let mut reader = Reader {
        draft: Draft::new(path.to_path_buf()),
        names: BTreeMap::new(),
        groups: Groups::default(),
    };
    let read = reader.read_sections(bytes);
    read.map_err(|error| error.in_file(path))?;
    reader.name_groups();
    Ok(reader.draft)
}

struct Reader {
    draft: Draft,
    /// Names by dimension and number.
    names: BTreeMap<(u8, i64), String>,
    groups: Groups,
}

/// Members of the physical groups by their number.
#[derive(Default)]
struct Groups {
    /// Element numbers of solids.
    solids: BTreeMap<i64, Vec<u64>>,
    /// Surface elements.
    facets: BTreeMap<i64, Vec<Facet>>,
    /// Nodes of points and lines, by dimension and number.
    nodes: BTreeMap<(u8, i64), Vec<u64>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V2,
    V4,
}

impl Reader {
    fn read_sections(&mut self, bytes: &[u8]) -> Result<()> {
        let mut source = Source::new(Scanner::new(bytes));
        let version = read_header(&mut source)?;
        let mut entities = v4::Entities::default();
        let mut seen = BTreeSet::new();
        while source.scan.next_record() {
            let line = source.scan.line();
            let Some(name) = source.scan.rest_of_line().strip_prefix(b"$") else {
                continue; // Gmsh, too, ignores what stands between sections.
            };
            source.section = shown(name);
            match (name, version) {
                (b"PhysicalNames", _) => {
                    self.read_physical_names(&mut source)?;
                    continue;
                }
                (b"Entities", Version::V4) => entities.read(&mut source, false)?,
                (b"PartitionedEntities", Version::V4) => entities.read(&mut source, true)?,
                (b"Nodes", Version::V2) => v2::read_nodes(self, &mut source, false)?,
                (b"ParametricNodes", Version::V2) => v2::read_nodes(self, &mut source, true)?,
                (b"Nodes", Version::V4) => v4::read_nodes(self, &mut source)?,
                (b"Elements", Version::V2) => v2::read_elements(self, &mut source)?,
                (b"Elements", Version::V4) => v4::read_elements(self, &mut source, &entities)?,
                _ => {
                    skip_section(&mut source, name, line)?;
                    continue;
                }
            }
            source.end_of_section()?;
            seen.insert(name.strip_prefix(b"Parametric").unwrap_or(name));
        }
        for needed in ["Nodes", "Elements"] {
            if !seen.contains(needed.as_bytes()) {
                return Err(Error::input(format!("the file has no section ${needed}"))
                    .advice("it may be cut off: write it again"));
            }
        }
        Ok(())
    }

    /// `dimension number "name"` a line, up to the end of the section.
    fn read_physical_names(&mut self, source: &mut Source) -> Result<()> {
        let scan = &mut source.scan;
        let mut is_count = true;
        while scan.next_record() {
            if scan.rest().starts_with(b"$") {
                let end = scan.rest_of_line();
                return if end == b"$EndPhysicalNames" {
                    Ok(())
                } else {
                    Err(
                        Error::input(format!("`{}` inside $PhysicalNames", shown(end)))
                            .at_line(scan.line() - 1)
                            .expected("`$EndPhysicalNames`"),
                    )
                };
            }
            if std::mem::replace(&mut is_count, false) {
                scan.unsigned("the number of physical names")?;
                continue;
            }
            let dimension = scan.unsigned("the dimension of a physical group")?;
            let number = scan.signed("the number of a physical group")?;
            let text = super::scan::trim(scan.rest_of_line());
            let inner = text.strip_prefix(b"\"").and_then(|t| t.strip_suffix(b"\""));
            let name = String::from_utf8_lossy(inner.unwrap_or(text)).into_owned();
            if !name.is_empty() && dimension <= 3 {
                self.names
                    .insert((dimension as u8, number.saturating_abs()), name);
            }
        }
        Err(source.cut_off())
    }

    /// Takes one element into the mesh and its groups (given by number; 0 is none).
    fn add_element(
        &mut self,
        kind: &ElementType,
        id: u64,
        nodes: &[u64],
        groups: &[i64],
        place: Place,
    ) {
        match (kind.dimension, kind.solid) {
            (3, Some((cell_type, order))) => {
                let ordered = order.iter().map(|&k| nodes[usize::from(k)]);
                self.draft.solids.push(cell_type, id, ordered, place);
            }
            (3, None) => {
                let name = format!("{} (Gmsh type {})", kind.name, kind.number);
                self.draft.note_unsupported(&name, place);
            }
            _ => {}
        }
        for group in groups
            .iter()
            .map(|g| g.saturating_abs())
            .filter(|&g| g != 0)
        {
            match kind.dimension {
                3 => self.groups.solids.entry(group).or_default().push(id),
                2 => {
                    let facet = Facet::new(&nodes[..kind.n_corners]);
                    self.groups.facets.entry(group).or_default().push(facet);
                }
                dimension => {
                    let members = self.groups.nodes.entry((dimension, group)).or_default();
                    members.extend_from_slice(nodes);
                }
            }
        }
    }

    /// Makes sets of the groups. Groups of one dimension that share a name become one set.
    fn name_groups(&mut self) {
        let names = &self.names;
        let name_of = |dimension: u8, group: i64| {
            let name = names.get(&(dimension, group)).cloned();
            name.unwrap_or_else(|| group.to_string())
        };
        let mut used = BTreeSet::new();
        for (group, ids) in std::mem::take(&mut self.groups.solids) {
            used.insert((3, group));
            let set = self.draft.cell_sets.entry(name_of(3, group)).or_default();
            set.ids.extend(ids);
        }
        for (group, mut facets) in std::mem::take(&mut self.groups.facets) {
            used.insert((2, group));
            let set: &mut DraftFaces = self.draft.face_sets.entry(name_of(2, group)).or_default();
            set.facets.append(&mut facets);
        }
        for ((dimension, group), mut ids) in std::mem::take(&mut self.groups.nodes) {
            used.insert((dimension, group));
            ids.sort_unstable();
            ids.dedup();
            let set = self
                .draft
                .node_sets
                .entry(name_of(dimension, group))
                .or_default();
            set.ids.extend(ids);
        }
        for (key, name) in names.iter().filter(|(key, _)| !used.contains(key)) {
            self.draft.warnings.push(format!(
                "physical group `{name}` (dimension {}) has no elements, ignored",
                key.0
            ));
        }
    }
}

/// `$MeshFormat`: version, 0 for ASCII or 1 for binary, size of a size; in a binary file the number 1 follows.
fn read_header(source: &mut Source) -> Result<Version> {
    loop {
        if !source.scan.next_record() {
            return Err(Error::input("not a Gmsh mesh").expected("a section $MeshFormat"));
        }
        let line = source.scan.line();
        match source.scan.rest_of_line() {
            b"$MeshFormat" => break,
            b"$Comments" => skip_section(source, b"Comments", line)?,
            other => {
                let found = shown(other);
                let error = Error::input("not a Gmsh mesh").at_line(line);
                return Err(match other {
                    b"$NOD" => error.expected("format 2.2 or 4.1, found format 1"),
                    _ => error.expected(format!("`$MeshFormat`, found `{found}`")),
                });
            }
        }
    }
    source.section = "MeshFormat".to_owned();
    source.record()?;
    let line = source.scan.line();
    let field = source.scan.field().map(shown).unwrap_or_default();
    let version = match field.as_str() {
        "2" | "2.0" | "2.1" | "2.2" => Version::V2,
        "4.1" => Version::V4,
        _ => {
            return Err(
                Error::input(format!("Gmsh format {field} is not supported"))
                    .at_line(line)
                    .expected("format 2.2 or 4.1")
                    .advice("write the mesh with `-format msh41`"),
            );
        }
    };
    let binary = source.scan.unsigned("0 (ASCII) or 1 (binary)")?;
    let size = source.scan.unsigned("the size of a number, 8")?;
    if binary > 1 || size != 8 {
        return Err(
            Error::input(format!("file type {binary}, data size {size}"))
                .at_line(line)
                .expected("file type 0 (ASCII) or 1 (binary), data size 8"),
        );
    }
    if binary == 1 {
        source.scan.rest_of_line();
        source.start_binary()?;
    }
    source.end_of_section()?;
    Ok(version)
}

/// Skips a section that we do not read.
fn skip_section(source: &mut Source, name: &[u8], line: usize) -> Result<()> {
    let end = [b"$End", name].concat();
    if source.scan.skip_past(&end) {
        source.scan.rest_of_line();
        return Ok(());
    }
    let what = format!("the file ends inside section ${}", shown(name));
    Err(Error::input(what)
        .at_line(line)
        .advice("it may be cut off: write it again"))
}

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
