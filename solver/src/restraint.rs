//! Whether the supports hold every body: the rigid motions that the constraints leave free, by name; and whether they
//! hold so much that the loads do nothing.
//!
//! For each connected body the six rigid motions about its centroid (rotations scaled by the body's size) are
//! restricted to the constrained degrees of freedom; a motion in the null space of their 6x6 Gram matrix is not
//! resisted by any support.
//!
//! Invariant: looks at coordinates and fixed degrees of freedom only, never at stiffness.

use crate::model::{Load, Model};
use fem_mesh::halo::Halo;
use fem_mesh::{CellFace, Comm, LocalMesh, components};
use nalgebra::{Matrix3, Matrix6, Vector3, Vector6};
use std::collections::BTreeMap;

/// Eigenvalues of the scaled Gram matrix below this share of the largest count as zero. They are squares: supports that
/// are closer together than about 1e-6 of the body's size do not hold a rotation. Rounding leaves some 1e-15.
pub(crate) const NULL_TOLERANCE: f64 = 1e-13;

/// A body with motions left free.
#[derive(Clone, Debug, PartialEq)]
pub struct FreeBody {
    /// Number of nodes of the body.
    pub n_nodes: u64,
    /// Smallest input node number of the body, to find it by.
    pub first_node_id: u64,
    /// Lower and upper corner of the body's bounding box, m.
    pub bounds: [[f64; 3]; 2],
    /// Names of the free motions: "translation x", "rotation about z", ...
    pub motions: Vec<String>,
}

/// Sums over one body that all ranks contribute to.
#[derive(Clone, Copy)]
pub(crate) struct BodySums {
    n_nodes: f64,
    first_id: f64,
    position: Vector3<f64>,
    low: Vector3<f64>,
    high: Vector3<f64>,
    pub(crate) gram: Matrix6<f64>,
}

impl BodySums {
    const WIDTH: usize = 2 + 3 + 3 + 3 + 36;

    pub(crate) fn empty() -> Self {
        BodySums {
            n_nodes: 0.0,
            first_id: f64::INFINITY,
            position: Vector3::zeros(),
            low: Vector3::repeat(f64::INFINITY),
            high: Vector3::repeat(f64::NEG_INFINITY),
            gram: Matrix6::zeros(),
        }
    }

    /// Adds a node of the mesh.
    pub(crate) fn add_node(&mut self, mesh: &LocalMesh, node: usize) {
        let x = Vector3::from(mesh.coords[node]);
        self.n_nodes += 1.0;
        self.first_id = self.first_id.min(mesh.node_ids[node] as f64);
        self.position += x;
        self.low = self.low.inf(&x);
        self.high = self.high.sup(&x);
    }

    /// Whether it is a node of no element.
    pub(crate) fn is_node(&self) -> bool {
        self.n_nodes == 1.0
    }

    /// Length of the diagonal of its box, m.
    pub(crate) fn size(&self) -> f64 {
        (self.high - self.low).norm()
    }

    /// A place in the frame of the body: from its center, in units of its size.
    pub(crate) fn in_frame(&self, x: [f64; 3]) -> Vector3<f64> {
        let size = (self.high - self.low).norm().max(f64::MIN_POSITIVE);
        (Vector3::from(x) - self.position / self.n_nodes) / size
    }

    /// The body with its free motions.
    pub(crate) fn with_motions(&self, motions: Vec<String>) -> FreeBody {
        FreeBody {
            n_nodes: self.n_nodes as u64,
            first_node_id: self.first_id as u64,
            bounds: [self.low.into(), self.high.into()],
            motions,
        }
    }

    pub(crate) fn merge(&mut self, other: &BodySums) {
        self.n_nodes += other.n_nodes;
        self.first_id = self.first_id.min(other.first_id);
        self.position += other.position;
        self.low = self.low.inf(&other.low);
        self.high = self.high.sup(&other.high);
        self.gram += other.gram;
    }

    fn to_numbers(self) -> [f64; Self::WIDTH] {
        let mut numbers = [0.0; Self::WIDTH];
        numbers[0] = self.n_nodes;
        numbers[1] = self.first_id;
        numbers[2..5].copy_from_slice(self.position.as_slice());
        numbers[5..8].copy_from_slice(self.low.as_slice());
        numbers[8..11].copy_from_slice(self.high.as_slice());
        numbers[11..].copy_from_slice(self.gram.as_slice());
        numbers
    }

    fn from_numbers(numbers: &[f64]) -> Self {
        BodySums {
            n_nodes: numbers[0],
            first_id: numbers[1],
            position: Vector3::from_column_slice(&numbers[2..5]),
            low: Vector3::from_column_slice(&numbers[5..8]),
            high: Vector3::from_column_slice(&numbers[8..11]),
            gram: Matrix6::from_column_slice(&numbers[11..Self::WIDTH]),
        }
    }
}

/// Collective. Bodies that can still move, the largest first; empty if all are held.
pub fn free_bodies(comm: &Comm, model: &Model, halo: &Halo) -> Vec<FreeBody> {
    let mesh = &model.mesh;
    let labels = components::label_bodies(comm, mesh, halo);
    let n_owned = mesh.nodes.n_owned();
    let mut bodies: BTreeMap<u64, BodySums> = BTreeMap::new();
    for node in 0..n_owned {
        let body = bodies.entry(labels[node]).or_insert_with(BodySums::empty);
        body.add_node(mesh, node);
    }
    let mut bodies = merge_over_ranks(comm, bodies);
    let mut grams: BTreeMap<u64, BodySums> = BTreeMap::new();
    for &(dof, _) in &model.fixed {
        let (node, component) = (dof as usize / 3, dof as usize % 3);
        if node >= n_owned {
            continue;
        }
        let x = bodies[&labels[node]].in_frame(mesh.coords[node]);
        let row = rigid_motion_row(x, component);
        grams
            .entry(labels[node])
            .or_insert_with(BodySums::empty)
            .gram += row * row.transpose();
    }
    for (label, sums) in merge_over_ranks(comm, grams) {
        if let Some(body) = bodies.get_mut(&label) {
            body.gram = sums.gram;
        }
    }
    let mut free: Vec<FreeBody> = bodies.values().filter_map(free_motions_of).collect();
    free.sort_by_key(|body| (std::cmp::Reverse(body.n_nodes), body.first_node_id));
    free
}

/// Collective. Whether there are loads but none acts on a degree of freedom that is free.
pub fn loads_do_nothing(comm: &Comm, model: &Model) -> bool {
    const ANY_DIRECTION: [f64; 3] = [1.0; 3];
    let cells = &model.mesh.cells;
    let mut is_held = vec![false; 3 * model.mesh.nodes.n_local()];
    for &(dof, _) in &model.fixed {
        is_held[dof as usize] = true;
    }
    let moves = |node: u32, along: &[f64; 3]| {
        (0..3).any(|c| along[c] != 0.0 && !is_held[3 * node as usize + c])
    };
    let on_faces = |faces: &[CellFace], along: &[f64; 3]| {
        let mut nodes = faces.iter().flat_map(|&f| cells.nodes_of_face(f).1);
        nodes.any(|node| moves(node, along))
    };
    let on_cells = |loaded: &[u32], along: &[f64; 3]| {
        let mut nodes = loaded.iter().flat_map(|&c| cells.nodes_of(c as usize));
        nodes.any(|&node| moves(node, along))
    };
    let acts = |load: &Load| match load {
        Load::Traction { faces, traction } => on_faces(faces, traction),
        Load::Pressure { faces, pressure } => *pressure != 0.0 && on_faces(faces, &ANY_DIRECTION),
        Load::PressureField { faces, .. } => on_faces(faces, &ANY_DIRECTION),
        Load::NodalForce { nodes, force } => nodes.iter().any(|&node| moves(node, force)),
        Load::BodyForce { cells, body_force } => on_cells(cells, body_force),
        Load::Gravity {
            cells,
            acceleration,
        } => on_cells(cells, acceleration),
        Load::Centrifugal { cells, omega, .. } => *omega != 0.0 && on_cells(cells, &ANY_DIRECTION),
        Load::TemperatureChange { cells, change } => {
            *change != 0.0 && on_cells(cells, &ANY_DIRECTION)
        }
        Load::InitialStress { cells, .. } | Load::InitialStrain { cells, .. } => {
            on_cells(cells, &ANY_DIRECTION)
        }
    };
    let n_acting = model.loads.iter().filter(|load| acts(load)).count();
    // A field of temperature acts everywhere.
    let is_loaded = !model.loads.is_empty() && model.temperatures.is_none();
    is_loaded && comm.sum_u64(n_acting as u64) == 0
}

/// Collective. Adds up the sums of equal labels over ranks, in the order of ranks.
pub(crate) fn merge_over_ranks(
    comm: &Comm,
    bodies: BTreeMap<u64, BodySums>,
) -> BTreeMap<u64, BodySums> {
    let labels: Vec<u64> = bodies.keys().copied().collect();
    let numbers: Vec<f64> = bodies.values().flat_map(|b| b.to_numbers()).collect();
    let labels = comm.all_gather(&labels);
    let numbers = comm.all_gather(&numbers);
    let mut merged: BTreeMap<u64, BodySums> = BTreeMap::new();
    for (labels, numbers) in labels.iter().zip(&numbers) {
        for (label, numbers) in labels.iter().zip(numbers.chunks_exact(BodySums::WIDTH)) {
            merged
                .entry(*label)
                .or_insert_with(BodySums::empty)
                .merge(&BodySums::from_numbers(numbers));
        }
    }
    merged
}

/// Displacement component `component` at `x` of the six rigid motions: translations, then rotations about x, y, z.
pub(crate) fn rigid_motion_row(x: Vector3<f64>, component: usize) -> Vector6<f64> {
    let mut row = Vector6::zeros();
    row[component] = 1.0;
    for axis in 0..3 {
        row[3 + axis] = Vector3::ith_axis(axis).cross(&x)[component];
    }
    row
}

fn free_motions_of(body: &BodySums) -> Option<FreeBody> {
    let eigen = body.gram.symmetric_eigen();
    let largest = eigen.eigenvalues.max();
    let null: Vec<Vector6<f64>> = (0..6)
        .filter(|&i| eigen.eigenvalues[i] <= NULL_TOLERANCE * largest || largest == 0.0)
        .map(|i| eigen.eigenvectors.column(i).into_owned())
        .collect();
    if null.is_empty() {
        return None;
    }
    Some(body.with_motions(name_motions(&null)))
}

/// Names for a basis of free motions. Rotations are named by the span of their rotation vectors (whatever point they
/// turn about), translations by the motions of the span without rotation.
pub(crate) fn name_motions(null: &[Vector6<f64>]) -> Vec<String> {
    let mut rotation = Matrix3::zeros();
    let mut everything = Matrix6::zeros();
    for v in null {
        let w = Vector3::new(v[3], v[4], v[5]);
        rotation += w * w.transpose();
        everything += v * v.transpose();
    }
    let rotations = directions_of(rotation, 1e-8);
    // Translations that lie in the null space themselves: its projector leaves them unchanged.
    let block: Matrix3<f64> = everything.fixed_view::<3, 3>(0, 0).into_owned();
    let translations = directions_of(block, 1.0 - 1e-8);
    let name = |what: &str, d: &Vector3<f64>| match (0..3).find(|&i| d[i].abs() > 1.0 - 1e-6) {
        Some(i) => format!("{what} {}", ["x", "y", "z"][i]),
        None => {
            // A direction and its opposite are one.
            let first = d.iter().find(|v| v.abs() > 1e-3);
            let d = (first.map_or(1.0, |v| v.signum()) * d)
                .map(|v| if v.abs() < 5e-4 { 0.0 } else { v });
            format!("{what} ({:.3}, {:.3}, {:.3})", d.x, d.y, d.z)
        }
    };
    let mut names: Vec<String> = translations
        .iter()
        .map(|d| name("translation", d))
        .collect();
    names.extend(rotations.iter().map(|d| name("rotation about", d)));
    names
}

/// Directions in the span of eigenvectors with eigenvalues of at least `threshold`, as coordinate axes where the span
/// contains them.
fn directions_of(matrix: Matrix3<f64>, threshold: f64) -> Vec<Vector3<f64>> {
    let eigen = matrix.symmetric_eigen();
    let span: Vec<Vector3<f64>> = (0..3)
        .filter(|&i| eigen.eigenvalues[i] >= threshold)
        .map(|i| eigen.eigenvectors.column(i).into_owned())
        .collect();
    let axes: Vec<Vector3<f64>> = (0..3)
        .map(|i| Vector3::ith(i, 1.0))
        .filter(|axis: &Vector3<f64>| {
            span.iter().map(|d| d.dot(axis).powi(2)).sum::<f64>() > 1.0 - 1e-6
        })
        .collect();
    let mut directions = axes.clone();
    for d in &span {
        let mut rest = *d;
        for known in &directions {
            rest -= known * known.dot(&rest);
        }
        if rest.norm() > 1e-3 {
            directions.push(rest.normalize());
        }
    }
    directions
}

#[cfg(test)]
mod tests {
    use super::{name_motions, rigid_motion_row};
    use nalgebra::{Matrix6, Vector3, Vector6};

    /// Names of the motions that supports (position, component) leave free.
    fn names(supports: &[([f64; 3], usize)]) -> Vec<String> {
        let mut gram = Matrix6::zeros();
        for &(x, component) in supports {
            let row = rigid_motion_row(Vector3::from(x), component);
            gram += row * row.transpose();
        }
        let eigen = gram.symmetric_eigen();
        let null: Vec<Vector6<f64>> = (0..6)
            .filter(|&i| eigen.eigenvalues[i] < 1e-10)
            .map(|i| eigen.eigenvectors.column(i).into_owned())
            .collect();
        if null.is_empty() {
            Vec::new()
        } else {
            name_motions(&null)
        }
    }

    #[test]
    fn a_point_support_leaves_three_rotations() {
        let point = [0.3, -0.2, 0.1];
        let expected = ["rotation about x", "rotation about y", "rotation about z"];
        assert_eq!(names(&[(point, 0), (point, 1), (point, 2)]), expected);
    }

    #[test]
    fn a_fixed_line_is_a_hinge() {
        let (a, b) = ([0.3, 0.2, -0.5], [0.3, 0.2, 0.5]);
        let supports: Vec<_> = [a, b]
            .iter()
            .flat_map(|&x| (0..3).map(move |c| (x, c)))
            .collect();
        assert_eq!(names(&supports), ["rotation about z"]);
    }

    #[test]
    fn a_roller_plane_leaves_the_motions_in_the_plane() {
        let corners = [
            [0.5, 0.5, -0.5],
            [-0.5, 0.5, -0.5],
            [0.5, -0.5, -0.5],
            [-0.5, -0.5, -0.5],
        ];
        let supports: Vec<_> = corners.iter().map(|&x| (x, 2)).collect();
        assert_eq!(
            names(&supports),
            ["translation x", "translation y", "rotation about z"]
        );
    }

    #[test]
    fn nothing_fixed_leaves_all_six_and_three_planes_none() {
        let mut supports = Vec::new();
        for (x, component) in [
            ([-0.5, 0.1, 0.2], 0),
            ([-0.5, 0.4, 0.2], 0),
            ([-0.5, 0.1, 0.4], 0),
        ] {
            supports.push((x, component));
            supports.push(([x[1], x[0], x[2]], 1));
            supports.push(([x[1], x[2], x[0]], 2));
        }
        assert_eq!(names(&supports), [] as [&str; 0]);
        assert_eq!(names(&[]).len(), 6);
    }
}
