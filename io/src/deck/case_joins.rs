//! Tables of a case that join nodes, from the model of a deck.
//!
//! Invariant: as `case_text.rs`, of which this is a part.

use super::model::{Coupling, JoinKind, Nodes, Orientation, RigidNodes, Surface};
use super::reader::Reader;
use super::toml::{Toml, list, number, quoted, vector};
use crate::mesh_file::draft::Place;
use fem_mesh::{Error, Result};
use std::collections::BTreeSet;

/// Nodes that take part in constraints though they belong to no element.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// All of them.
    pub(super) free: BTreeSet<u64>,
    /// Those that turn: reference nodes.
    pub(super) references: BTreeSet<u64>,
}

const COMPONENTS: [&str; 6] = ["x", "y", "z", "rx", "ry", "rz"];

impl Reader {
    /// Writes the tables; with `writes_nodes` also those of nodes that belong to no element.
    pub(super) fn write_joins(&mut self, toml: &mut Toml, writes_nodes: bool) -> Result<Joined> {
        let mut joined = Joined::default();
        let joins = std::mem::take(&mut self.model.joins);
        for join in &joins {
            self.write_join(toml, &join.kind, join.place, &mut joined)?;
        }
        for transform in std::mem::take(&mut self.model.transforms) {
            self.require("", "transform", transform.place, "*TRANSFORM")?;
            let set = self
                .source
                .node_set(&Nodes::Set(transform.nodes), transform.place)?;
            toml.table("[[transform]]", transform.place);
            toml.key("on", quoted(&set));
            toml.key("kind", quoted(system(transform.is_cylindrical)));
            toml.key("a", vector(transform.a));
            toml.key("b", vector(transform.b));
        }
        for &id in joined.free.iter().filter(|_| writes_nodes) {
            if let Some((x, _)) = self.source.node(id) {
                toml.table("[[node]]", Place::default());
                toml.key("number", id.to_string());
                toml.key("at", vector(x));
                toml.key("name", quoted(&self.source.name_free_node(id)));
            }
        }
        Ok(joined)
    }

    fn write_join(
        &mut self,
        toml: &mut Toml,
        kind: &JoinKind,
        place: Place,
        joined: &mut Joined,
    ) -> Result<()> {
        match kind {
            JoinKind::Equation(terms) => self.write_equation(toml, terms, place, joined),
            JoinKind::Mpc(kind, nodes) => {
                self.require("", "mpc", place, "*MPC")?;
                let ids: Vec<u64> = nodes.iter().flat_map(|n| self.source.node_ids(n)).collect();
                ids.iter()
                    .try_for_each(|&id| self.join_node(id, place, joined))?;
                toml.table("[[mpc]]", place);
                toml.key("kind", quoted(&kind.to_lowercase()));
                toml.key("nodes", list(ids.iter().map(u64::to_string)));
                Ok(())
            }
            JoinKind::Coupling(coupling) => self.write_coupling(toml, coupling, place, joined),
            JoinKind::RigidBody {
                nodes,
                reference,
                rotation,
            } => self.write_rigid_body(toml, nodes, *reference, *rotation, place, joined),
            JoinKind::Tie(tie) => {
                self.require("", "tie", place, "*TIE")?;
                toml.table("[[tie]]", place);
                self.write_sides(toml, &tie.slave, &tie.master, tie.tolerance, place)?;
                toml.key("adjust", tie.adjusts.to_string());
                Ok(())
            }
            JoinKind::Cyclic {
                slave,
                master,
                tolerance,
                n_sectors,
                axis,
            } => {
                self.require("", "cyclic_symmetry", place, "*CYCLIC SYMMETRY MODEL")?;
                toml.table("[[cyclic_symmetry]]", place);
                self.write_sides(toml, slave, master, *tolerance, place)?;
                toml.key("origin", vector(axis[0]));
                toml.key("axis", vector([0, 1, 2].map(|i| axis[1][i] - axis[0][i])));
                toml.key("n_sectors", n_sectors.to_string());
                Ok(())
            }
            JoinKind::PreTension {
                surface,
                node,
                normal,
            } => self.write_pre_tension(toml, (surface, *node, *normal), place, joined),
        }
    }

    /// Notes a node that a constraint names; one in no element must be known all the same.
    pub(super) fn join_node(&self, id: u64, place: Place, joined: &mut Joined) -> Result<()> {
        match self.source.node(id) {
            Some((_, true)) => Ok(()),
            Some((_, false)) => {
                joined.free.insert(id);
                Ok(())
            }
            None => Err(self
                .source
                .error(place, format!("node {id} does not exist"))),
        }
    }

    fn write_equation(
        &mut self,
        toml: &mut Toml,
        terms: &[(Nodes, u64, f64)],
        place: Place,
        joined: &mut Joined,
    ) -> Result<()> {
        self.require("", "equation", place, "*EQUATION")?;
        let mut written = Vec::with_capacity(terms.len());
        for (nodes, dof, coefficient) in terms {
            for id in self.source.node_ids(nodes) {
                self.join_node(id, place, joined)?;
            }
            let node = match nodes {
                Nodes::Number(id) => id.to_string(),
                Nodes::Set(_) => quoted(&self.source.node_set(nodes, place)?),
            };
            let component = COMPONENTS[(*dof as usize - 1).min(5)];
            written.push(format!(
                "{{ node = {node}, component = \"{component}\", coefficient = {} }}",
                number(*coefficient)
            ));
        }
        toml.table("[[equation]]", place);
        toml.key("terms", list(written.into_iter()));
        Ok(())
    }

    fn write_coupling(
        &mut self,
        toml: &mut Toml,
        coupling: &Coupling,
        place: Place,
        joined: &mut Joined,
    ) -> Result<()> {
        self.require("", "coupling", place, "*COUPLING")?;
        let ids = self.source.node_ids(&coupling.reference);
        let &[id] = &ids[..] else {
            let what = format!(
                "the reference of coupling `{}` is {} nodes",
                coupling.name,
                ids.len()
            );
            return Err(self.source.error(place, what).expected("one node"));
        };
        self.join_node(id, place, joined)?;
        joined.references.insert(id);
        let on = self.surface_set(&coupling.surface, place)?;
        toml.table("[[coupling]]", place);
        toml.key(
            "kind",
            quoted(if coupling.is_kinematic {
                "kinematic"
            } else {
                "distributing"
            }),
        );
        toml.key("reference", id.to_string());
        toml.key("on", quoted(&on));
        if coupling.is_kinematic {
            let moved = coupling.dofs.iter().filter(|&&dof| dof <= 3);
            let moved: Vec<String> = moved
                .map(|&dof| quoted(COMPONENTS[dof as usize - 1]))
                .collect();
            if moved.is_empty() {
                let error = self
                    .source
                    .error(place, "*KINEMATIC without a degree of freedom from 1 to 3");
                return Err(error.expected("displacements: nodes of solids have no rotations"));
            }
            if moved.len() < 3 {
                toml.key("components", list(moved.into_iter()));
            }
        }
        if let Some(name) = &coupling.orientation {
            let orientation = self.orientation_named(name, place)?;
            if orientation.rotation.is_some() || !orientation.others.is_empty() {
                return Err(self.not_yet(
                    place,
                    "an *ORIENTATION of a coupling with a further rotation",
                ));
            }
            toml.key(
                "system",
                format!(
                    "{{ kind = \"{}\", a = {}, b = {} }}",
                    system(orientation.is_cylindrical),
                    vector(orientation.points[0]),
                    vector(orientation.points[1])
                ),
            );
        }
        Ok(())
    }

    fn orientation_named(&self, name: &str, place: Place) -> Result<&Orientation> {
        let is_it = |o: &&Orientation| o.name.eq_ignore_ascii_case(name);
        self.model.orientations.iter().find(is_it).ok_or_else(|| {
            let error: Error = self
                .source
                .error(place, format!("orientation `{name}` does not exist"));
            error.expected("an *ORIENTATION of that name")
        })
    }

    fn write_rigid_body(
        &mut self,
        toml: &mut Toml,
        nodes: &RigidNodes,
        reference: u64,
        rotation: Option<u64>,
        place: Place,
        joined: &mut Joined,
    ) -> Result<()> {
        self.require("", "rigid_body", place, "*RIGID BODY")?;
        self.join_node(reference, place, joined)?;
        let set = match nodes {
            RigidNodes::NodeSet(name) => self.source.node_set(&Nodes::Set(name.clone()), place)?,
            RigidNodes::ElementSet(name) => self
                .source
                .element_set(&super::model::Elements::Set(name.clone())),
        };
        toml.table("[[rigid_body]]", place);
        toml.key("on", quoted(&set));
        toml.key("reference", reference.to_string());
        match rotation {
            Some(id) => {
                self.join_node(id, place, joined)?;
                toml.key("rotation_node", id.to_string());
            }
            None => drop(joined.references.insert(reference)),
        }
        Ok(())
    }

    /// Slave, master and tolerance.
    fn write_sides(
        &mut self,
        toml: &mut Toml,
        slave: &Surface,
        master: &Surface,
        tolerance: Option<f64>,
        place: Place,
    ) -> Result<()> {
        let slave = self.surface_set(slave, place)?;
        toml.key("slave", quoted(&slave));
        let master = self.surface_set(master, place)?;
        toml.key("master", quoted(&master));
        if let Some(tolerance) = tolerance.filter(|&t| t > 0.0) {
            toml.key("position_tolerance", number(tolerance));
        }
        Ok(())
    }

    fn surface_set(&mut self, surface: &Surface, place: Place) -> Result<String> {
        match surface {
            Surface::Faces(name) => Ok(name.clone()),
            Surface::Nodes(name) => self.source.node_set(&Nodes::Set(name.clone()), place),
        }
    }
}

/// Name of a system of axes in cases.
fn system(is_cylindrical: bool) -> &'static str {
    if is_cylindrical {
        "cylindrical"
    } else {
        "rectangular"
    }
}
