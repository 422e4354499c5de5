//! Rigid-body modes: the displacements that strain nothing, as numbers for multigrid.
//!
//! Invariant: knows coordinates only, no cell and no material.

use fem_mesh::Comm;

/// Collective. The six rigid-body modes at the owned nodes, 3 x 6 a node: row i is displacement component i of three
/// translations (along x, y, z) and three rotations (about x, y, z).
///
/// Rotations are taken about the center of all nodes and divided by the largest distance of a coordinate from it, so
/// that all modes are of order 1. Rows of degrees of freedom that `is_fixed` names (local numbers 3 * node +
/// component; those beyond the owned ones are passed over) are zero: a prescribed displacement takes no part. At the nodes
/// `rotations` the degrees of freedom are rotations themselves.
pub fn rigid_body_modes(
    comm: &Comm,
    coords: &[[f64; 3]],
    fixed: impl Iterator<Item = u32>,
    rotations: &[u32],
) -> Vec<[[f64; 6]; 3]> {
    let mut low = [f64::INFINITY; 3];
    let mut high = [f64::INFINITY; 3];
    for i in 0..3 {
        low[i] = comm.min(coords.iter().map(|x| x[i]).fold(f64::INFINITY, f64::min));
        high[i] = comm.max(
            coords
                .iter()
                .map(|x| x[i])
                .fold(f64::NEG_INFINITY, f64::max),
        );
    }
    let size = (0..3).map(|i| 0.5 * (high[i] - low[i])).fold(0.0, f64::max);
    let scale = if size > 0.0 && size.is_finite() {
        1.0 / size
    } else {
        1.0
    };
    let mut modes: Vec<[[f64; 6]; 3]> = (coords.iter())
        .map(|coord| {
            let [x, y, z] = [0, 1, 2].map(|i| scale * (coord[i] - 0.5 * (low[i] + high[i])));
            [
                [1.0, 0.0, 0.0, 0.0, z, -y],
                [0.0, 1.0, 0.0, -z, 0.0, x],
                [0.0, 0.0, 1.0, y, -x, 0.0],
            ]
        })
        .collect();
    for &node in rotations {
        let mut mode = [[0.0; 6]; 3];
        (0..3).for_each(|axis| mode[axis][3 + axis] = scale);
        modes[node as usize] = mode;
    }
    for dof in fixed.map(|dof| dof as usize) {
        if let Some(mode) = modes.get_mut(dof / 3) {
            mode[dof % 3] = [0.0; 6];
        }
    }
    modes
}

#[cfg(test)]
mod tests {
    use super::rigid_body_modes;
    use crate::assembly::test_models::{distorted_box, model, split};
    use crate::assembly::{Pattern, assemble_stiffness};
    use crate::linalg::{DistMatrix, LinearOperator};
    use fem_mesh::CellType;
    use fem_mesh::comm::run_threads;

    #[test]
    fn they_strain_nothing() {
        for n_ranks in 1..=3 {
            run_threads(n_ranks, |comm| {
                let mesh = distorted_box(CellType::Tet10, [2, 2, 3], false);
                let model = model(split(comm, &mesh));
                let (pattern, mut rows) = Pattern::new(&model.mesh).expect("a small mesh");
                assemble_stiffness(comm, &model, &pattern, &mut rows).expect("valid elements");
                let map = model.mesh.nodes.clone();
                let n = map.n_owned();
                let matrix = DistMatrix::new(comm, map, rows.lower, rows.ghost);
                let modes =
                    rigid_body_modes(comm, &model.mesh.coords[..n], std::iter::empty(), &[]);
                let norm = matrix.norm_inf(comm);
                for k in 0..6 {
                    let u: Vec<f64> = modes.iter().flatten().map(|row| row[k]).collect();
                    assert!(comm.max(u.iter().fold(0.0, |m: f64, u| m.max(u.abs()))) > 0.4);
                    let mut force = vec![0.0; u.len()];
                    matrix.apply(comm, &u, &mut force);
                    assert!(force.iter().all(|f| f.abs() < 1e-13 * norm), "mode {k}");
                }
            });
        }
    }

    #[test]
    fn prescribed_components_are_left_out() {
        let comm = fem_mesh::Comm::alone();
        let coords = [[0.0; 3], [2.0, 0.0, 0.0]];
        let modes = rigid_body_modes(&comm, &coords, [1, 5, 77].into_iter(), &[]);
        assert_eq!(modes[0][1], [0.0; 6]);
        assert_eq!(modes[1][2], [0.0; 6]);
        assert_eq!(modes[1][1], [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    }
}
