//! The nearest point of some faces to each of some points, over all ranks.
//!
//! Each rank looks at the faces of its own cells, found through a grid of boxes, and all ranks compare what they found.
//! The nearest point of one face: Gauss-Newton iterations from its middle; where they leave it, the nearest point of its
//! edges.
//!
//! Invariant: knows points and faces; not what they are for.

use crate::element::MAX_NODES;
use crate::element::shape::{natural_nodes, shape_at};
use fem_mesh::{CellFace, CellType, Comm, LocalMesh};
use nalgebra::{Matrix2, Vector2, Vector3};
use std::collections::HashMap;

/// Most iterations for one point.
const MAX_STEPS: usize = 40;
/// A step in natural coordinates that ends the iterations.
const SMALL_STEP: f64 = 1e-13;
/// How far outside its natural cell a point may be and still lie in it.
const ROUNDING: f64 = 1e-9;
/// Shape functions smaller than this are 0.
const NO_WEIGHT: f64 = 1e-11;
/// Most boxes of the grid along an axis that one face enters.
const MAX_SPAN: i64 = 64;

/// Where a point meets the faces.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hit {
    /// The nearest point, m.
    pub(super) x: [f64; 3],
    /// Its distance, m.
    pub(super) distance: f64,
    /// Global nodes of the face with their shape functions there.
    pub(super) weights: Vec<(u64, f64)>,
}

/// Collective. The nearest point to each of `points` (the same on every rank) of the faces of owned cells among `faces`, if
/// it is no farther than `tolerance`. Of equally near faces that of the lowest element counts.
pub(super) fn project(
    comm: &Comm,
    mesh: &LocalMesh,
    faces: &[CellFace],
    points: &[[f64; 3]],
    tolerance: f64,
) -> Vec<Option<Hit>> {
    let patches: Vec<Patch> = (faces.iter())
        .filter(|face| (face.cell as usize) < mesh.n_owned_cells)
        .map(|&face| Patch::new(mesh, face))
        .collect();
    let grid = Grid::new(&patches, tolerance);
    let mut records: Vec<u64> = Vec::new();
    for (k, point) in points.iter().enumerate() {
        let x = Vector3::from(*point);
        let mut best: Option<(f64, u64, Near, usize)> = None;
        for &patch in grid.near(x) {
            let near = patches[patch].nearest(x);
            let rank = (near.distance, patches[patch].cell_id);
            if near.distance <= tolerance && best.as_ref().is_none_or(|b| rank < (b.0, b.1)) {
                best = Some((rank.0, rank.1, near, patch));
            }
        }
        if let Some((distance, cell_id, near, patch)) = best {
            let patch = &patches[patch];
            records.extend([k as u64, distance.to_bits(), cell_id]);
            records.extend(near.x.iter().map(|v| v.to_bits()));
            records.push(patch.nodes.len() as u64);
            for (node, n) in patch.nodes.iter().zip(near.shape) {
                records.extend([*node, n.to_bits()]);
            }
        }
    }
    let mut hits: Vec<Option<(u64, Hit)>> = vec![None; points.len()];
    for list in comm.all_gather(&records) {
        let mut rest = &list[..];
        while let [k, distance, cell_id, x, y, z, n, tail @ ..] = rest {
            let (weights, tail) = tail.split_at(2 * *n as usize);
            let distance = f64::from_bits(*distance);
            let best = &mut hits[*k as usize];
            if best
                .as_ref()
                .is_none_or(|(id, hit)| (distance, *cell_id) < (hit.distance, *id))
            {
                let weights = weights
                    .chunks_exact(2)
                    .map(|w| (w[0], f64::from_bits(w[1])));
                let hit = Hit {
                    x: [*x, *y, *z].map(f64::from_bits),
                    distance,
                    weights: weights.filter(|(_, n)| n.abs() > NO_WEIGHT).collect(),
                };
                *best = Some((*cell_id, hit));
            }
            rest = tail;
        }
    }
    hits.into_iter()
        .map(|hit| hit.map(|(_, hit)| hit))
        .collect()
}

/// Collective. Mean length of the faces of owned cells among `faces`: the root of their mean box's diagonal area, m.
pub(super) fn typical_size(comm: &Comm, mesh: &LocalMesh, faces: &[CellFace]) -> f64 {
    let mut sums = [0.0, 0.0];
    for &face in faces
        .iter()
        .filter(|face| (face.cell as usize) < mesh.n_owned_cells)
    {
        let patch = Patch::new(mesh, face);
        sums[0] += (patch.high - patch.low).norm() / 2.0_f64.sqrt();
        sums[1] += 1.0;
    }
    comm.sum_into(&mut sums);
    if sums[1] > 0.0 {
        sums[0] / sums[1]
    } else {
        0.0
    }
}

/// A face with its nodes.
struct Patch {
    cell_type: CellType,
    cell_id: u64,
    nodes: Vec<u64>,
    coords: Vec<Vector3<f64>>,
    low: Vector3<f64>,
    high: Vector3<f64>,
}

/// A point of a face.
struct Near {
    x: Vector3<f64>,
    distance: f64,
    shape: [f64; MAX_NODES],
}

impl Patch {
    fn new(mesh: &LocalMesh, face: CellFace) -> Self {
        let (cell_type, nodes) = mesh.cells.nodes_of_face(face);
        let nodes: Vec<u32> = nodes.collect();
        let coords: Vec<Vector3<f64>> = (nodes.iter())
            .map(|&node| Vector3::from(mesh.coords[node as usize]))
            .collect();
        let low = coords.iter().fold(coords[0], |low, x| low.inf(x));
        let high = coords.iter().fold(coords[0], |high, x| high.sup(x));
        Patch {
            cell_type,
            cell_id: mesh.cell_ids[face.cell as usize],
            nodes: nodes
                .iter()
                .map(|&node| mesh.nodes.global(node as usize))
                .collect(),
            coords,
            low,
            high,
        }
    }

    fn is_triangle(&self) -> bool {
        self.cell_type.n_corners() == 3
    }

    fn is_inside(&self, xi: Vector2<f64>) -> bool {
        if self.is_triangle() {
            xi.x >= -ROUNDING && xi.y >= -ROUNDING && xi.x + xi.y <= 1.0 + ROUNDING
        } else {
            xi.amax() <= 1.0 + ROUNDING
        }
    }

    /// Place and derivatives at natural coordinates.
    fn at(&self, xi: Vector2<f64>) -> (Near, [Vector3<f64>; 2]) {
        let at = shape_at(self.cell_type, [xi.x, xi.y, 0.0]);
        let mut x = Vector3::zeros();
        let mut tangents = [Vector3::zeros(); 2];
        for (k, place) in self.coords.iter().enumerate() {
            x += place * at.shape[k];
            for (i, tangent) in tangents.iter_mut().enumerate() {
                *tangent += place * at.grad[k][i];
            }
        }
        let near = Near {
            x,
            distance: f64::INFINITY,
            shape: at.shape,
        };
        (near, tangents)
    }

    fn finish(&self, point: Vector3<f64>, xi: Vector2<f64>) -> Near {
        let (mut near, _) = self.at(xi);
        near.distance = (near.x - point).norm();
        near
    }

    /// The nearest point of the face.
    fn nearest(&self, point: Vector3<f64>) -> Near {
        let middle = if self.is_triangle() {
            Vector2::new(1.0 / 3.0, 1.0 / 3.0)
        } else {
            Vector2::zeros()
        };
        if let Some(xi) = self.iterate(point, middle).filter(|xi| self.is_inside(*xi)) {
            return self.finish(point, xi);
        }
        let corners = &natural_nodes(self.cell_type)[..self.cell_type.n_corners()];
        let corner = |k: usize| Vector2::new(corners[k][0], corners[k][1]);
        let mut best: Option<Near> = None;
        for k in 0..corners.len() {
            let (from, to) = (corner(k), corner((k + 1) % corners.len()));
            let near = self.finish(point, self.nearest_on_edge(point, from, to));
            if best.as_ref().is_none_or(|b| near.distance < b.distance) {
                best = Some(near);
            }
        }
        best.unwrap_or_else(|| self.finish(point, middle))
    }

    /// Gauss-Newton on the distance; `None` if it does not settle near the face.
    fn iterate(&self, point: Vector3<f64>, start: Vector2<f64>) -> Option<Vector2<f64>> {
        let mut xi = start;
        for _ in 0..MAX_STEPS {
            let (near, [a, b]) = self.at(xi);
            let gap = point - near.x;
            let matrix = Matrix2::new(a.dot(&a), a.dot(&b), a.dot(&b), b.dot(&b));
            let step = matrix.try_inverse()? * Vector2::new(a.dot(&gap), b.dot(&gap));
            xi += step;
            if step.amax() < SMALL_STEP {
                return Some(xi);
            }
            if xi.amax() > 10.0 {
                return None;
            }
        }
        Some(xi)
    }

    fn nearest_on_edge(
        &self,
        point: Vector3<f64>,
        from: Vector2<f64>,
        to: Vector2<f64>,
    ) -> Vector2<f64> {
        let along = to - from;
        let mut s: f64 = 0.5;
        for _ in 0..MAX_STEPS {
            let (near, [a, b]) = self.at(from + along * s);
            let tangent = a * along.x + b * along.y;
            let step =
                tangent.dot(&(point - near.x)) / tangent.norm_squared().max(f64::MIN_POSITIVE);
            let next = (s + step).clamp(0.0, 1.0);
            let change = (next - s).abs();
            s = next;
            if change < SMALL_STEP {
                break;
            }
        }
        from + along * s
    }
}

/// Boxes of space with the faces that come near them.
struct Grid {
    size: f64,
    patches: HashMap<[i64; 3], Vec<usize>>,
}

impl Grid {
    fn new(patches: &[Patch], tolerance: f64) -> Self {
        let widest = patches
            .iter()
            .map(|p| (p.high - p.low).amax())
            .fold(0.0, f64::max);
        let size = (widest + 2.0 * tolerance).max(f64::MIN_POSITIVE);
        let mut grid = Grid {
            size,
            patches: HashMap::new(),
        };
        for (k, patch) in patches.iter().enumerate() {
            let margin = Vector3::repeat(tolerance * (1.0 + 1e-9) + 1e-12 * size);
            let (low, high) = (
                grid.place(patch.low - margin),
                grid.place(patch.high + margin),
            );
            let high = [0, 1, 2].map(|i| high[i].min(low[i] + MAX_SPAN));
            for i in low[0]..=high[0] {
                for j in low[1]..=high[1] {
                    for l in low[2]..=high[2] {
                        grid.patches.entry([i, j, l]).or_default().push(k);
                    }
                }
            }
        }
        grid
    }

    fn place(&self, x: Vector3<f64>) -> [i64; 3] {
        [0, 1, 2].map(|i| (x[i] / self.size).floor() as i64)
    }

    fn near(&self, x: Vector3<f64>) -> &[usize] {
        self.patches.get(&self.place(x)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::project;
    use crate::assembly::test_models::{distorted_box, split};
    use fem_mesh::comm::run_threads;
    use fem_mesh::{CellFace, CellType};

    #[test]
    fn points_find_the_face_below_them_on_any_number_of_ranks() {
        for cell_type in [CellType::Hex8, CellType::Tet10, CellType::Hex20] {
            let mesh = distorted_box(cell_type, [3, 2, 3], false);
            let points = [
                [0.31, 0.42, 2.05],
                [1.5, 1.0, 2.0],
                [0.0, 0.5, 1.98],
                [0.7, 0.5, 2.5],
                [1.6, 0.5, 2.0],
            ];
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let mesh = split(comm, &mesh);
                    let mut faces = Vec::new();
                    for cell in 0..mesh.n_cells() as u32 {
                        for face in 0..mesh.cells.types[cell as usize].faces().len() as u8 {
                            let at = CellFace { cell, face };
                            if mesh
                                .cells
                                .nodes_of_face(at)
                                .1
                                .all(|n| mesh.coords[n as usize][2] == 2.0)
                            {
                                faces.push(at);
                            }
                        }
                    }
                    let hits = project(comm, &mesh, &faces, &points, 0.11);
                    assert!(hits[3].is_none());
                    for (k, expected) in [
                        (0, [0.31, 0.42, 2.0]),
                        (1, points[1]),
                        (2, [0.0, 0.5, 2.0]),
                        (4, [1.5, 0.5, 2.0]),
                    ] {
                        let hit = hits[k].as_ref().expect("near enough");
                        let sum: f64 = hit.weights.iter().map(|(_, n)| n).sum();
                        assert!((sum - 1.0).abs() < 1e-12);
                        for i in 0..3 {
                            assert!(
                                (hit.x[i] - expected[i]).abs() < 1e-9,
                                "{cell_type} {k}: {:?}",
                                hit.x
                            );
                        }
                    }
                });
            }
        }
    }
}
