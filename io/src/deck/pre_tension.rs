//! *PRE-TENSION SECTION: a cut through solids whose sides are held together by one degree of freedom.
//!
//! The nodes of the surface are doubled: the elements of the surface keep theirs, those on the other side get new ones.
//! For each pair, old minus new displacement is the normal times the displacement x of the node of the section: where the
//! normal points out of the elements of the surface, a positive force on that node pulls the sides together, and its
//! displacement is how much they overlap. Source: CalculiX CrunchiX
//! user's manual, *PRE-TENSION SECTION.
//!
//! Invariant: changes node numbers of elements and adds nodes, nothing else of the mesh.

use super::case_joins::Joined;
use super::model::{Nodes, Temperature};
use super::reader::Reader;
use super::toml::{Toml, list, number};
use crate::mesh_file::draft::Place;
use fem_mesh::Result;
use std::collections::{BTreeMap, BTreeSet};

const COMPONENTS: [&str; 3] = ["x", "y", "z"];

impl Reader {
    pub(super) fn write_pre_tension(
        &mut self,
        toml: &mut Toml,
        (surface, node, normal): (&str, u64, [f64; 3]),
        place: Place,
        joined: &mut Joined,
    ) -> Result<()> {
        self.require("", "equation", place, "*PRE-TENSION SECTION")?;
        self.join_node(node, place, joined)?;
        let pairs = self.cut(surface, normal, place)?;
        for (old, new) in &pairs {
            for (component, along) in COMPONENTS.iter().zip(normal) {
                let term = |node: u64, component: &str, coefficient: f64| {
                    let coefficient = number(coefficient);
                    format!(
                        "{{ node = {node}, component = \"{component}\", coefficient = {coefficient} }}"
                    )
                };
                let mut terms = vec![term(*new, component, 1.0), term(*old, component, -1.0)];
                if along != 0.0 {
                    terms.push(term(node, "x", along));
                }
                toml.table("[[equation]]", place);
                toml.key("terms", list(terms.into_iter()));
            }
        }
        self.heat_new_nodes(&pairs);
        Ok(())
    }

    /// Doubles the nodes of the surface; pairs of old and new number.
    fn cut(&mut self, surface: &str, normal: [f64; 3], place: Place) -> Result<BTreeMap<u64, u64>> {
        let solids = &self.source.draft.solids;
        let faces = self.source.faces_of(surface);
        let all: Vec<&[u64]> = solids.iter().map(|(_, nodes)| nodes).collect();
        let mut old = BTreeSet::new();
        let mut owners = BTreeSet::new();
        for &(cell, face) in &faces {
            owners.insert(cell);
            let faces = solids.types[cell].faces();
            let local = faces
                .get(usize::from(face))
                .map_or(&[][..], |face| face.nodes);
            old.extend(local.iter().map(|&k| all[cell][usize::from(k)]));
        }
        let on_surface: Vec<u64> = old.iter().copied().collect();
        let height = |nodes: &[u64]| -> f64 {
            let points = nodes.iter().filter_map(|&id| self.source.node(id));
            let (mut sum, mut n) = (0.0, 0.0);
            for (x, _) in points {
                sum += (0..3).map(|i| x[i] * normal[i]).sum::<f64>();
                n += 1.0;
            }
            sum / f64::max(n, 1.0)
        };
        let level = height(&on_surface);
        let sides: BTreeSet<bool> = owners
            .iter()
            .map(|&cell| height(all[cell]) > level)
            .collect();
        let touches = |nodes: &[u64]| nodes.iter().any(|id| old.contains(id));
        let is_across = |cell: usize| {
            sides
                .iter()
                .all(|&side| side != (height(all[cell]) > level))
        };
        let across: BTreeSet<usize> = (0..all.len())
            .filter(|&cell| touches(all[cell]) && is_across(cell))
            .collect();
        if sides.len() != 1 || across.is_empty() {
            let what =
                format!("the surface `{surface}` of a pre-tension section does not cut the model");
            let error = self.source.error(place, what);
            return Err(error.expected("faces inside the model, of elements on one side of it"));
        }
        let first = self
            .source
            .draft
            .nodes
            .ids
            .iter()
            .max()
            .map_or(1, |&id| id.saturating_add(1));
        let pairs: BTreeMap<u64, u64> = on_surface.into_iter().zip(first..).collect();
        self.source.renumber(&across, &pairs);
        Ok(pairs)
    }

    /// New nodes have the temperatures of the old ones.
    fn heat_new_nodes(&mut self, pairs: &BTreeMap<u64, u64>) {
        let source = &self.source;
        let extend = |list: &mut Vec<Temperature>| {
            let mut extended = Vec::with_capacity(list.len());
            for temperature in list.drain(..) {
                let ids = source.node_ids(&temperature.nodes);
                let new = ids
                    .iter()
                    .filter_map(|id| pairs.get(id))
                    .map(|&id| Temperature {
                        nodes: Nodes::Number(id),
                        ..temperature.clone()
                    });
                let new: Vec<Temperature> = new.collect();
                extended.push(temperature);
                extended.extend(new);
            }
            *list = extended;
        };
        extend(&mut self.model.initial_temperatures);
        self.model
            .steps
            .iter_mut()
            .for_each(|step| extend(&mut step.temperatures));
    }
}
