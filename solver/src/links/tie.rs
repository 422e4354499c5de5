//! Ties of meshes that do not match, and cyclic symmetry: nodes follow the faces that they are projected on.
//!
//! A slave node moves as the point of the master face below it does: its displacement is the sum of those of the
//! nodes of the face times their shape functions; across a cyclic border that displacement is turned by the angle of the
//! sector. Forces and, where slave nodes lie on the faces, moments are in balance. Where meshes match, the tie is exact;
//! where they do not, constant stress is passed on exactly if slave nodes are the finer ones on flat linear faces, and
//! otherwise with an error of the order of the discretization.
//!
//! Invariant: geometry only.

use super::Equation;
use super::build::Maker;
use super::gather::{PlacedNode, fault, gather_nodes};
use super::project::{Hit, project, typical_size};
use crate::resolve::Names;
use fem_io::case::{Case, CyclicInput, Place, TieInput};
use fem_io::check::SetUse;
use fem_mesh::{Comm, LocalMesh, Result};
use nalgebra::{Rotation3, Unit, Vector3};

/// Default tolerance, as a share of the size of a master face.
const TOLERANCE: f64 = 0.025;
/// How many node numbers a warning lists.
const LISTED: usize = 10;

/// A slave node with the point that it follows.
pub(super) type Tied = (PlacedNode, Hit);

/// Collective. The slave nodes of a tie with what they follow; those out of reach are warned of.
///
/// # Errors
/// No slave node is in reach.
pub(super) fn find_tie(
    comm: &Comm,
    case: &Case,
    names: &Names,
    input: &TieInput,
    warnings: &mut Vec<String>,
) -> Result<Vec<Tied>> {
    let mesh = names.mesh;
    let slaves = gather_nodes(comm, mesh, &names.nodes(&input.slave, SetUse::Force));
    let faces = names.faces(&input.master, SetUse::SurfaceLoad);
    let tolerance = input
        .position_tolerance
        .unwrap_or_else(|| TOLERANCE * typical_size(comm, mesh, &faces));
    let points: Vec<[f64; 3]> = slaves.iter().map(|slave| slave.x).collect();
    let hits = project(comm, mesh, &faces, &points, tolerance);
    let title = Title {
        case,
        place: input.place,
        name: "[[tie]]",
        tolerance,
    };
    title.sort_out(slaves, hits, warnings)
}

/// Collective. Moves the nodes of the mesh that a tie adjusts.
pub(super) fn adjust(mesh: &mut LocalMesh, tied: &mut [Tied]) {
    for (slave, hit) in tied {
        slave.x = hit.x;
        if let Some(local) = mesh.nodes.local(slave.global) {
            mesh.coords[local] = hit.x;
        }
    }
}

/// What is said of nodes out of reach.
struct Title<'a> {
    case: &'a Case,
    place: Place,
    name: &'static str,
    tolerance: f64,
}

impl Title<'_> {
    fn sort_out(
        &self,
        slaves: Vec<PlacedNode>,
        hits: Vec<Option<Hit>>,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Tied>> {
        let mut tied = Vec::with_capacity(slaves.len());
        let mut missed = Vec::new();
        for (slave, hit) in slaves.into_iter().zip(hits) {
            match hit {
                Some(hit) => tied.push((slave, hit)),
                None => missed.push(slave.id),
            }
        }
        let Title {
            case,
            name,
            tolerance,
            ..
        } = self;
        if tied.is_empty() {
            let what =
                format!("no slave node of the {name} is within {tolerance:.3e} of a master face");
            return Err(fault(case, self.place, what)
                .expected("surfaces that face each other")
                .advice("exchange or correct the sets, or raise `position_tolerance`"));
        }
        if !missed.is_empty() {
            let listed: Vec<String> = missed.iter().take(LISTED).map(u64::to_string).collect();
            let more = if missed.len() > LISTED { ", ..." } else { "" };
            let what = format!(
                "{} slave node(s) of the {name} are farther than {tolerance:.3e} from every master face and stay free: {}{more}",
                missed.len(),
                listed.join(", ")
            );
            warnings.push(case.error_at(self.place, what).to_string());
        }
        Ok(tied)
    }
}

impl Maker<'_> {
    /// Slave nodes follow their faces.
    pub(super) fn add_tie(&mut self, input: &TieInput, tied: &[Tied]) {
        let origin = self.origin(input.place, "[[tie]]");
        for (slave, hit) in tied.iter().filter(|(slave, hit)| !is_of_face(slave, hit)) {
            for i in 0..3 {
                let masters = hit.weights.iter().map(|(node, n)| (3 * node + i, -n));
                self.equations.push(Equation {
                    terms: std::iter::once((3 * slave.global + i, 1.0))
                        .chain(masters)
                        .collect(),
                    constant: 0.0,
                    origin,
                });
            }
        }
    }

    /// Collective. The displacement of a slave node is that of the point of the master face which is turned to it, turned
    /// as well. The sense of turning is the one in which more nodes meet.
    ///
    /// # Errors
    /// No slave node meets a turned master face.
    pub(super) fn add_cyclic(
        &mut self,
        comm: &Comm,
        names: &Names,
        input: &CyclicInput,
    ) -> Result<()> {
        let mesh = names.mesh;
        let origin = self.origin(input.place, "[[cyclic_symmetry]]");
        let slaves = gather_nodes(comm, mesh, &names.nodes(&input.slave, SetUse::Force));
        let faces = names.faces(&input.master, SetUse::SurfaceLoad);
        let tolerance = input
            .position_tolerance
            .unwrap_or_else(|| TOLERANCE * typical_size(comm, mesh, &faces));
        let axis = Unit::new_normalize(Vector3::from(input.axis));
        let center = Vector3::from(input.origin);
        let angle = std::f64::consts::TAU / input.n_sectors as f64;
        let mut best: Option<(usize, Rotation3<f64>, Vec<Option<Hit>>)> = None;
        for sense in [1.0, -1.0] {
            let turn = Rotation3::from_axis_angle(&axis, sense * angle);
            let back = |slave: &PlacedNode| {
                (center + turn.inverse() * (Vector3::from(slave.x) - center)).into()
            };
            let points: Vec<[f64; 3]> = slaves.iter().map(back).collect();
            let hits = project(comm, mesh, &faces, &points, tolerance);
            let n = hits.iter().flatten().count();
            if best.as_ref().is_none_or(|(most, ..)| n > *most) {
                best = Some((n, turn, hits));
            }
        }
        let Some((_, turn, hits)) = best else {
            return Ok(());
        };
        let title = Title {
            case: self.case,
            place: input.place,
            name: "[[cyclic_symmetry]]",
            tolerance,
        };
        let tied = title.sort_out(slaves, hits, &mut self.warnings)?;
        let matrix = turn.matrix();
        for (slave, hit) in &tied {
            for i in 0..3usize {
                let mut terms = vec![(3 * slave.global + i as u64, 1.0)];
                for (node, n) in &hit.weights {
                    for j in 0..3usize {
                        let c = -n * matrix[(i, j)];
                        let dof = 3 * node + j as u64;
                        match terms.iter_mut().find(|(known, _)| *known == dof) {
                            Some((_, sum)) => *sum += c,
                            None => terms.push((dof, c)),
                        }
                    }
                }
                terms.retain(|(_, c)| c.abs() > 1e-14);
                // A node on the axis follows itself: along the axis that says nothing.
                if !terms.is_empty() {
                    self.equations.push(Equation {
                        terms,
                        constant: 0.0,
                        origin,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Whether a slave node is a node of the face itself: the meshes share it.
fn is_of_face(slave: &PlacedNode, hit: &Hit) -> bool {
    hit.weights.iter().any(|(node, _)| *node == slave.global)
}
