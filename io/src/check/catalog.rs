//! The names of a mesh's sets and the one rule by which a name stands for a set.
//!
//! Invariant: sees names, kinds and counts; no members, no case.

use crate::case::LoadKind;
use crate::case::words::{quoted, suggest_name};
use fem_mesh::mesh::Sets;
use fem_mesh::{Comm, Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The element set that always exists: every element of the mesh.
pub const ALL: &str = "all";

/// What a set is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SetKind {
    /// Faces of cells.
    Face,
    /// Nodes.
    Node,
    /// Cells, "elements" to the user.
    Cell,
}

impl SetKind {
    const ALL: [SetKind; 3] = [SetKind::Face, SetKind::Node, SetKind::Cell];

    /// As users read it, with its article.
    pub const fn words(self) -> &'static str {
        match self {
            SetKind::Face => "a face set",
            SetKind::Node => "a node set",
            SetKind::Cell => "an element set",
        }
    }
}

/// What a set is wanted for; decides which kinds fit and which of them is taken if a name has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetUse {
    /// `elements` of a material or a formulation: element set.
    Material,
    /// Constraint: face, else node, else element set.
    Constraint,
    /// Traction, pressure: face set.
    SurfaceLoad,
    /// Force: face, else node set.
    Force,
    /// The same force on each node: node set.
    NodalForce,
    /// `elements` of an orientation: element set.
    Orientation,
    /// Temperature: node, else face, else element set.
    Temperature,
    /// Body force, gravity, centrifugal, temperature change, initial stress and strain: element set.
    BodyLoad,
    /// Probe: face, else node, else element set.
    Probe,
    /// A reference node, or the moment on it: node set.
    Reference,
}

impl SetUse {
    /// What a kind of load acts on.
    pub const fn of_load(kind: &LoadKind) -> SetUse {
        match kind {
            LoadKind::Traction(_) | LoadKind::Pressure(_) | LoadKind::PressureField(_) => {
                SetUse::SurfaceLoad
            }
            LoadKind::Force(_) => SetUse::Force,
            LoadKind::NodalForce(_) => SetUse::NodalForce,
            LoadKind::Moment(_) => SetUse::Reference,
            LoadKind::BodyForce(_)
            | LoadKind::Gravity(_)
            | LoadKind::Centrifugal { .. }
            | LoadKind::TemperatureChange(_)
            | LoadKind::InitialStress(_)
            | LoadKind::InitialStrain(_) => SetUse::BodyLoad,
        }
    }

    /// The kinds that fit, the preferred one first.
    pub const fn kinds(self) -> &'static [SetKind] {
        match self {
            SetUse::Material | SetUse::BodyLoad | SetUse::Orientation => &[SetKind::Cell],
            SetUse::NodalForce => &[SetKind::Node],
            SetUse::Temperature => &[SetKind::Node, SetKind::Face, SetKind::Cell],
            SetUse::SurfaceLoad => &[SetKind::Face],
            SetUse::Reference => &[SetKind::Node],
            SetUse::Force => &[SetKind::Face, SetKind::Node],
            SetUse::Constraint | SetUse::Probe => &SetKind::ALL,
        }
    }
}

/// A set of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundSet<'a> {
    /// Its name in the mesh.
    pub name: &'a str,
    /// What it is made of.
    pub kind: SetKind,
    /// Number of members in the whole mesh.
    pub n_members: u64,
}

/// Names, kinds and sizes of all sets of the whole mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetCatalog {
    sets: BTreeMap<(String, SetKind), u64>,
}

impl SetCatalog {
    /// A catalog with nothing but the element set `all`, which has `n_cells` members.
    pub fn new(n_cells: u64) -> Self {
        SetCatalog {
            sets: BTreeMap::from([((ALL.to_owned(), SetKind::Cell), n_cells)]),
        }
    }

    /// Collective. The catalog of a mesh of which each rank holds `n_cells` cells and its part of `sets` (not all
    /// ranks need know all names). Members held by several ranks count several times.
    pub fn gather(comm: &Comm, sets: &Sets, n_cells: u64) -> Self {
        let faces = sets
            .faces
            .iter()
            .map(|(name, members)| (SetKind::Face, members.len(), name));
        let nodes = sets
            .nodes
            .iter()
            .map(|(name, members)| (SetKind::Node, members.len(), name));
        let cells = sets
            .cells
            .iter()
            .map(|(name, members)| (SetKind::Cell, members.len(), name));
        let mut bytes = Vec::new();
        for (kind, n, name) in faces.chain(nodes).chain(cells) {
            bytes.push(kind as u8);
            bytes.extend((n as u64).to_le_bytes());
            bytes.extend((name.len() as u64).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        let mut catalog = SetCatalog::new(comm.sum_u64(n_cells));
        for part in comm.all_gather(&bytes) {
            let mut rest = &part[..];
            while let Some((kind, n, name)) = take_record(&mut rest) {
                catalog.add(&name, kind, n);
            }
        }
        catalog
    }

    /// Adds `n_members` to a set, which comes into being with the first call. The element set `all` stays as it is.
    pub fn add(&mut self, name: &str, kind: SetKind, n_members: u64) {
        if (name, kind) != (ALL, SetKind::Cell) {
            *self.sets.entry((name.to_owned(), kind)).or_default() += n_members;
        }
    }

    /// The set that `typed` stands for: that name exactly, else whatever the case of its letters; of the kinds that
    /// fit, the one preferred.
    ///
    /// # Errors
    /// There is no such set, none of a kind that fits, it is empty, or several differ from `typed` in case only.
    /// The error has no place yet.
    pub fn find(&self, typed: &str, purpose: SetUse) -> Result<FoundSet<'_>> {
        let best = |same: &dyn Fn(&str) -> bool| -> Vec<FoundSet<'_>> {
            let of_kind = |kind| {
                self.iter()
                    .filter(|set| set.kind == kind && same(set.name))
                    .collect::<Vec<_>>()
            };
            purpose
                .kinds()
                .iter()
                .map(|&kind| of_kind(kind))
                .find(|sets| !sets.is_empty())
                .unwrap_or_default()
        };
        let mut found = best(&|name| name == typed);
        if found.is_empty() {
            found = best(&|name| is_same(name, typed));
        }
        match found[..] {
            [set] if set.n_members == 0 => {
                let what = format!("\"{}\", {}, has no members", set.name, set.kind.words());
                let advice = "correct the group in the mesh, or the box that defines the set";
                Err(Error::input(what).advice(advice))
            }
            [set] => Ok(set),
            [] => Err(self.not_found(typed, purpose)),
            [first, second, ..] => {
                let what = format!(
                    "\"{typed}\" may be \"{}\" or \"{}\"",
                    first.name, second.name
                );
                Err(Error::input(what)
                    .expected("a set name with its letters in the same case as in the mesh"))
            }
        }
    }

    /// All sets, by name.
    pub fn iter(&self) -> impl Iterator<Item = FoundSet<'_>> {
        self.sets.iter().map(|((name, kind), &n_members)| FoundSet {
            name,
            kind: *kind,
            n_members,
        })
    }

    fn not_found(&self, typed: &str, purpose: SetUse) -> Error {
        let kinds = purpose.kinds();
        let wanted = kinds
            .iter()
            .map(|kind| kind.words())
            .collect::<Vec<_>>()
            .join(" or ");
        let fit: BTreeSet<_> = self
            .iter()
            .filter(|set| kinds.contains(&set.kind))
            .map(|set| set.name)
            .collect();
        let fit: Vec<_> = fit.into_iter().collect();
        let error = match self.iter().find(|set| is_same(set.name, typed)) {
            Some(set) => Error::input(format!("\"{}\" is {} here", set.name, set.kind.words())),
            None => suggest_name(
                Error::input(format!("there is no set \"{typed}\"")),
                typed,
                &fit,
            ),
        };
        match fit.len() {
            0 => {
                let error = error.expected(format!("{wanted}, but the mesh has none"));
                error.advice("define one with [[set]]")
            }
            n if n > MAX_LISTED => {
                let listed = quoted(&fit[..MAX_LISTED]);
                error.expected(format!(
                    "{wanted}: one of {listed} and {} more",
                    n - MAX_LISTED
                ))
            }
            _ => error.expected(format!("{wanted}: one of {}", quoted(&fit))),
        }
    }
}

fn is_same(name: &str, typed: &str) -> bool {
    name.to_lowercase() == typed.to_lowercase()
}

/// No message lists more names than this.
const MAX_LISTED: usize = 30;

fn take_record(bytes: &mut &[u8]) -> Option<(SetKind, u64, String)> {
    let (&kind, rest) = bytes.split_first()?;
    let (n, rest) = rest.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let (name, rest) = rest.split_at_checked(u64::from_le_bytes(*length) as usize)?;
    *bytes = rest;
    let kind = *SetKind::ALL.get(usize::from(kind))?;
    Some((
        kind,
        u64::from_le_bytes(*n),
        String::from_utf8_lossy(name).into_owned(),
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use super::{SetCatalog, SetKind, SetUse};
    use fem_mesh::comm::run_threads;
    use fem_mesh::mesh::Sets;

    pub(in crate::check) fn catalog() -> SetCatalog {
        let mut sets = SetCatalog::new(100);
        for (name, kind, n) in [
            ("Top", SetKind::Face, 5),
            ("Top", SetKind::Node, 12),
            ("corners", SetKind::Node, 8),
            ("Core", SetKind::Cell, 10),
            ("core", SetKind::Cell, 10),
            ("nothing", SetKind::Face, 0),
        ] {
            sets.add(name, kind, n);
        }
        sets
    }

    #[test]
    fn the_kind_preferred_is_found_whatever_the_case_of_letters() {
        let sets = catalog();
        let kind = |name, purpose| sets.find(name, purpose).unwrap().kind;
        assert_eq!(kind("top", SetUse::Constraint), SetKind::Face);
        assert_eq!(kind("Top", SetUse::Force), SetKind::Face);
        assert_eq!(kind("CORNERS", SetUse::Force), SetKind::Node);
        assert_eq!(kind("all", SetUse::Constraint), SetKind::Cell);
        assert_eq!(sets.find("core", SetUse::BodyLoad).unwrap().name, "core");
        assert!(
            sets.find("CORE", SetUse::BodyLoad)
                .unwrap_err()
                .to_string()
                .contains("\"Core\" or \"core\"")
        );
    }

    #[test]
    fn ranks_with_parts_of_the_sets_get_one_catalog() {
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let mut sets = Sets::default();
                if comm.is_root() {
                    sets.nodes.insert("only on rank 0".to_owned(), vec![3, 4]);
                }
                sets.cells.insert("everywhere".to_owned(), vec![0]);
                let catalog = SetCatalog::gather(comm, &sets, 7);
                let found = |name, purpose| catalog.find(name, purpose).unwrap().n_members;
                assert_eq!(found("all", SetUse::Material), 7 * n_ranks as u64);
                assert_eq!(found("only on rank 0", SetUse::Force), 2);
                assert_eq!(found("everywhere", SetUse::BodyLoad), n_ranks as u64);
            });
        }
    }
}
