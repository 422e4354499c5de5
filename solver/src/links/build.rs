//! From the tables of the case to [`Links`]: reference nodes, local systems, ties, equations, rows.
//!
//! Invariant: the last place where the tables of constraints are read.

use super::frames::{Frame, frame, frames_of_nodes, turn_prescribed};
use super::gather::{NodeBook, PlacedNode, fault, gather_equations, gather_nodes, id_of};
use super::tie::{Tied, adjust, find_tie};
use super::{Equation, Links, ROTATION_ID, name_node, reduce};
use crate::resolve::Names;
use fem_io::case::{Case, CouplingKind, NodeRef, Place, SystemInput};
use fem_io::check::{SetCatalog, SetUse};
use fem_mesh::free_nodes::{FreeNode, append_free_nodes};
use fem_mesh::{Comm, LocalMesh, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A reference node with its rotation node, by global number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    pub(super) node: PlacedNode,
    pub(super) rotation: u64,
}

/// What is known before loads and prescribed values are resolved.
#[derive(Default)]
pub struct Preparation {
    /// Axes of local nodes whose prescribed values and forces are in a local system.
    pub(super) frames: BTreeMap<u32, Frame>,
    /// Axes of all nodes that equations name, by global number.
    all_frames: BTreeMap<u64, Frame>,
    /// Rotation node of each reference node, global numbers.
    rotations: BTreeMap<u64, u64>,
    /// References of the couplings, then of the rigid bodies.
    references: Vec<Reference>,
    /// What the slaves of each tie follow.
    ties: Vec<Vec<Tied>>,
    /// What the user should know, the same on every rank.
    pub warnings: Vec<String>,
}

/// Collective. Finds reference nodes, gives them rotation nodes, which become nodes of `mesh`, and moves the slave nodes
/// of ties that are adjusted.
///
/// # Errors
/// Nodes that do not exist, a node with two local systems, a tie without a node in reach.
pub fn prepare(
    comm: &Comm,
    case: &Case,
    catalog: &SetCatalog,
    mesh: &mut LocalMesh,
) -> Result<Preparation> {
    let mut prepared = Preparation::default();
    if case.links.is_empty() {
        return Ok(prepared);
    }
    let names = Names { catalog, mesh };
    let book = NodeBook::new(comm, case, &names);
    for tie in &case.links.ties {
        let found = find_tie(comm, case, &names, tie, &mut prepared.warnings)?;
        prepared.ties.push(found);
    }
    let wanted = find_references(case, &book)?;
    // Rotation nodes of their own, one for each reference without a node named for it.
    let n_global = mesh.nodes.n_global();
    let mut made: Vec<FreeNode> = Vec::new();
    for (node, rotation) in &wanted {
        let global = match rotation {
            Some(rotation) => rotation.global,
            None => match prepared.rotations.get(&node.global) {
                Some(known) => *known,
                None => {
                    made.push(FreeNode {
                        id: ROTATION_ID + node.id,
                        x: node.x,
                        sets: Vec::new(),
                    });
                    n_global + made.len() as u64 - 1
                }
            },
        };
        prepared.rotations.insert(node.global, global);
        prepared.references.push(Reference {
            node: *node,
            rotation: global,
        });
    }
    append_free_nodes(comm, mesh, &made)?;
    for (tie, tied) in case.links.ties.iter().zip(&mut prepared.ties) {
        if tie.adjust {
            adjust(mesh, tied);
        }
    }
    let names = Names { catalog, mesh };
    prepared.frames = comm.all_ok(frames_of_nodes(case, &names))?;
    prepared.share_frames(comm, mesh);
    prepared.add_reference_frames(case, mesh);
    Ok(prepared)
}

/// The reference nodes of couplings and rigid bodies, with the rotation nodes that the user names.
fn find_references(case: &Case, book: &NodeBook) -> Result<Vec<(PlacedNode, Option<PlacedNode>)>> {
    let mut found = Vec::new();
    for coupling in &case.links.couplings {
        found.push((book.node(&coupling.reference, coupling.place)?, None));
    }
    for body in &case.links.rigid_bodies {
        let node = book.node(&body.reference, body.place)?;
        let rotation = body
            .rotation_node
            .as_ref()
            .map(|node: &NodeRef| book.node(node, body.place));
        let rotation = rotation.transpose()?;
        if rotation.is_some_and(|rotation| rotation.global == node.global) {
            let what = format!("node {} is both reference and rotation node", node.id);
            return Err(fault(case, body.place, what).expected("two different nodes"));
        }
        found.push((node, rotation));
    }
    Ok(found)
}

impl Preparation {
    /// Collective. Tells all ranks the axes of owned nodes: equations may name any of them.
    fn share_frames(&mut self, comm: &Comm, mesh: &LocalMesh) {
        let owned = self
            .frames
            .iter()
            .filter(|(node, _)| (**node as usize) < mesh.nodes.n_owned());
        let mine: Vec<[u64; 10]> = owned
            .map(|(&node, frame)| {
                let mut bits = [mesh.nodes.global(node as usize); 10];
                for (bits, value) in bits[1..].iter_mut().zip(frame.as_flattened()) {
                    *bits = value.to_bits();
                }
                bits
            })
            .collect();
        for bits in comm.all_gather(&mine).iter().flatten() {
            let row = |k: usize| [0, 1, 2].map(|i| f64::from_bits(bits[1 + 3 * k + i]));
            self.all_frames.insert(bits[0], [row(0), row(1), row(2)]);
        }
    }

    /// Reference nodes take the axes of their coupling, rotation nodes those of their reference node.
    fn add_reference_frames(&mut self, case: &Case, mesh: &LocalMesh) {
        let systems = case.links.couplings.iter().map(|coupling| coupling.system);
        for (reference, system) in self.references.iter().zip(systems) {
            if let Some(system) = system {
                self.all_frames
                    .insert(reference.node.global, frame(&system, reference.node.x));
            }
        }
        for reference in &self.references {
            if let Some(&frame) = self.all_frames.get(&reference.node.global) {
                self.all_frames.entry(reference.rotation).or_insert(frame);
            }
            for global in [reference.node.global, reference.rotation] {
                if let (Some(local), Some(frame)) =
                    (mesh.nodes.local(global), self.all_frames.get(&global))
                {
                    self.frames.insert(local as u32, *frame);
                }
            }
        }
    }

    /// Collective. The local rotation nodes of the owned nodes among `nodes`, on the ranks that hold them, with how many
    /// there are in all.
    ///
    /// # Errors
    /// A node that is no reference node.
    fn rotations_of(
        &self,
        comm: &Comm,
        case: &Case,
        mesh: &LocalMesh,
        nodes: &[u32],
        place: Place,
    ) -> Result<Vec<u64>> {
        let nodes = gather_nodes(comm, mesh, nodes);
        let rotation = |node: &PlacedNode| {
            self.rotations.get(&node.global).copied().ok_or_else(|| {
                let what = format!("{} has no rotation", name_node(node.id));
                fault(case, place, what)
                    .expected("the reference node of a [[coupling]] or [[rigid_body]]")
            })
        };
        nodes.iter().map(rotation).collect()
    }

    /// Collective. Prescribed rotations of the case on the local rotation nodes, ascending: local degree of freedom, value,
    /// index of the constraint.
    ///
    /// # Errors
    /// A rotation prescribed where there is none.
    pub fn prescribed_rotations(
        &self,
        comm: &Comm,
        case: &Case,
        names: &Names,
    ) -> Result<Vec<(u32, f64, usize)>> {
        let mut all = Vec::new();
        for (index, constraint) in case.constraints.iter().enumerate() {
            if constraint.rotation == [None; 3] {
                continue;
            }
            let nodes = names.nodes(&constraint.on, SetUse::Constraint);
            for rotation in self.rotations_of(comm, case, names.mesh, &nodes, constraint.place)? {
                if let Some(local) = names.mesh.nodes.local(rotation) {
                    let values = constraint.rotation.iter().zip(0..);
                    all.extend(
                        values.filter_map(|(v, c)| v.map(|v| (3 * local as u32 + c, v, index))),
                    );
                }
            }
        }
        all.sort_by_key(|&(dof, _, index)| (dof, index));
        Ok(all)
    }

    /// Collective. The local rotation nodes of the reference nodes among `nodes`, and how many there are on all ranks.
    ///
    /// # Errors
    /// A node that is no reference node.
    pub fn moment_nodes(
        &self,
        comm: &Comm,
        case: &Case,
        mesh: &LocalMesh,
        nodes: &[u32],
        place: Place,
    ) -> Result<(Vec<u32>, usize)> {
        let rotations = self.rotations_of(comm, case, mesh, nodes, place)?;
        let local = rotations
            .iter()
            .filter_map(|&rotation| mesh.nodes.local(rotation));
        Ok((local.map(|node| node as u32).collect(), rotations.len()))
    }

    /// Axes of the local nodes whose prescribed values are in a local system.
    pub fn axes(&self) -> &BTreeMap<u32, Frame> {
        &self.frames
    }

    /// Nodal forces of `loads` turned from local axes to global ones.
    pub fn turn_forces(&self, loads: Vec<crate::model::Load>) -> Vec<crate::model::Load> {
        super::frames::turn_forces(self, loads)
    }
}

/// Collects equations.
pub(super) struct Maker<'a> {
    pub(super) case: &'a Case,
    prepared: &'a Preparation,
    pub(super) equations: Vec<Equation>,
    pub(super) warnings: Vec<String>,
    origins: Vec<(Place, &'static str)>,
}

impl Maker<'_> {
    /// Number of a table that equations stem from.
    pub(super) fn origin(&mut self, place: Place, title: &'static str) -> u32 {
        self.origins.push((place, title));
        self.origins.len() as u32 - 1
    }

    /// The axes of equations at a node.
    pub(super) fn frame_of(&self, global: u64) -> Option<Frame> {
        self.prepared.all_frames.get(&global).copied()
    }

    /// Global rotation node of a reference node.
    pub(super) fn rotation_of(&self, node: &PlacedNode, place: Place) -> Result<u64> {
        self.prepared
            .rotations
            .get(&node.global)
            .copied()
            .ok_or_else(|| {
                let what = format!("node {} has no rotation", node.id);
                fault(self.case, place, what)
                    .expected("the reference node of a [[coupling]] or [[rigid_body]]")
            })
    }
}

/// Collective. The links of the case, and the prescribed global degrees of freedom of the owned nodes: `fixed` with local
/// axes turned, and degrees of freedom of free nodes that nothing else holds.
///
/// # Errors
/// Nodes that do not exist or have no rotation, equations that contradict each other or prescribed values.
pub fn build(
    comm: &Comm,
    case: &Case,
    names: &Names,
    prepared: &mut Preparation,
    fixed: Vec<(u32, f64)>,
) -> Result<(Links, Vec<(u32, f64)>)> {
    if case.links.is_empty() {
        return Ok((Links::default(), fixed));
    }
    let mesh = names.mesh;
    let mut maker = Maker {
        case,
        prepared,
        equations: Vec::new(),
        warnings: Vec::new(),
        origins: Vec::new(),
    };
    let place = case
        .links
        .transforms
        .first()
        .map_or(Place::default(), |t| t.place);
    let origin = maker.origin(place, "prescribed displacement in a local system");
    let (mut fixed, supports) = turn_prescribed(mesh, prepared, &fixed, origin);
    maker.equations = gather_equations(comm, &supports);
    add_all(comm, names, &mut maker)?;
    let Maker {
        equations,
        warnings,
        origins,
        ..
    } = maker;
    let prescribed = prescribed_of(comm, mesh, &equations, &fixed);
    let reduced = reduce(&equations, &prescribed);
    if let Some((index, error)) = reduced.contradiction {
        let equation = &equations[index];
        let (place, title) = origins[equation.origin as usize];
        let node = id_of(
            comm,
            mesh,
            equation.terms.first().map_or(0, |(dof, _)| dof / 3),
        );
        let what = format!(
            "an equation of the {title} at {} contradicts other constraints or prescribed values (by {error:.1e} of its terms)",
            name_node(node)
        );
        return Err(fault(case, place, what).advice("remove one of them"));
    }
    let mut rotations: Vec<u64> = prepared.rotations.values().copied().collect();
    rotations.sort_unstable();
    rotations.dedup();
    let links = Links {
        rows: reduced.rows,
        equations,
        rotations,
    };
    let is_news = reduced.redundant.len();
    prepared.warnings.extend(warnings);
    if is_news > 0 {
        prepared.warnings.push(format!(
            "{is_news} constraint equation(s) follow from others or from prescribed values and are dropped"
        ));
    }
    fixed.extend(unheld(mesh, &links, &fixed));
    fixed.sort_by_key(|(dof, _)| *dof);
    Ok((links, fixed))
}

/// Collective. The equations of all tables.
fn add_all(comm: &Comm, names: &Names, maker: &mut Maker) -> Result<()> {
    let case = maker.case;
    let prepared = maker.prepared;
    let book = NodeBook::new(comm, case, names);
    for equation in &case.links.equations {
        maker.add_equations(&book, equation)?;
    }
    let nodes_of =
        |on: &[String]| gather_nodes(comm, names.mesh, &names.nodes(on, SetUse::Constraint));
    let (of_couplings, of_bodies) = prepared.references.split_at(case.links.couplings.len());
    for (coupling, reference) in case.links.couplings.iter().zip(of_couplings) {
        match coupling.kind {
            CouplingKind::Distributing => {
                maker.add_distributing(comm, names, coupling, reference)?;
            }
            CouplingKind::Kinematic => {
                let origin = maker.origin(coupling.place, "kinematic [[coupling]]");
                let system: Option<&SystemInput> = coupling.system.as_ref();
                maker.add_rigid(
                    origin,
                    &nodes_of(&coupling.on),
                    reference,
                    coupling.components,
                    system,
                );
            }
        }
    }
    for (body, reference) in case.links.rigid_bodies.iter().zip(of_bodies) {
        let origin = maker.origin(body.place, "[[rigid_body]]");
        maker.add_rigid(origin, &nodes_of(&body.on), reference, [true; 3], None);
    }
    for (tie, tied) in case.links.ties.iter().zip(&prepared.ties) {
        maker.add_tie(tie, tied);
    }
    for cyclic in &case.links.cyclic {
        maker.add_cyclic(comm, names, cyclic)?;
    }
    for mpc in &case.links.mpcs {
        maker.add_mpc(&book, mpc)?;
    }
    Ok(())
}

/// Collective. Prescribed values of the degrees of freedom that equations name.
fn prescribed_of(
    comm: &Comm,
    mesh: &LocalMesh,
    equations: &[Equation],
    fixed: &[(u32, f64)],
) -> BTreeMap<u64, f64> {
    let named: BTreeSet<u64> = equations
        .iter()
        .flat_map(|e| &e.terms)
        .map(|(dof, _)| *dof)
        .collect();
    let n_owned = 3 * mesh.nodes.n_owned();
    let mine: Vec<[u64; 2]> = (fixed.iter())
        .filter(|(dof, _)| (*dof as usize) < n_owned)
        .map(|&(dof, value)| {
            (
                3 * mesh.nodes.global(dof as usize / 3) + u64::from(dof % 3),
                value,
            )
        })
        .filter(|(dof, _)| named.contains(dof))
        .map(|(dof, value)| [dof, value.to_bits()])
        .collect();
    let all = comm.all_gather(&mine).concat();
    all.iter()
        .map(|[dof, value]| (*dof, f64::from_bits(*value)))
        .collect()
}

/// Degrees of freedom of owned nodes in no element that no equation and no support holds: they stand still.
fn unheld(mesh: &LocalMesh, links: &Links, fixed: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let mut is_in_cell = vec![false; mesh.nodes.n_local()];
    mesh.cells
        .nodes
        .iter()
        .for_each(|&node| is_in_cell[node as usize] = true);
    let free = (0..mesh.nodes.n_owned()).filter(|&node| !is_in_cell[node]);
    let dofs: Vec<u32> = free
        .flat_map(|node| (0..3).map(move |c| (3 * node + c) as u32))
        .collect();
    if dofs.is_empty() {
        return Vec::new();
    }
    let followed: BTreeSet<u64> = links
        .rows
        .values()
        .flat_map(|row| &row.terms)
        .map(|(dof, _)| *dof)
        .collect();
    let is_held = |dof: &u32| {
        let global = 3 * mesh.nodes.global(*dof as usize / 3) + u64::from(dof % 3);
        followed.contains(&global)
            || links.rows.contains_key(&global)
            || fixed.binary_search_by_key(dof, |(d, _)| *d).is_ok()
    };
    dofs.into_iter()
        .filter(|dof| !is_held(dof))
        .map(|dof| (dof, 0.0))
        .collect()
}
