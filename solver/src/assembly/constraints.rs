//! Prescribed displacements, eliminated so that the matrix stays symmetric.
//!
//! Rows and columns of prescribed degrees of freedom become zero but for their diagonal entry, which keeps its value
//! (a scaling that fits its neighbors), and the right-hand side takes over what they caused. The solver then finds the
//! free displacements and zeros at the prescribed ones, whose values are added afterwards.
//!
//! Invariant: each rank changes its own rows; nothing is communicated.

use super::pattern::BlockRows;
use super::slabs::Slabs;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Prescribed values by local degree of freedom.
struct Prescribed {
    is_fixed: Vec<[bool; 3]>,
    value: Vec<[f64; 3]>,
}

/// Eliminates the degrees of freedom `fixed` (local number 3 * node + component, ghosts included, and value, m) from
/// `rows` and `rhs` (3 an owned node). On return `rhs` is 0 at prescribed degrees of freedom.
pub fn constrain(slabs: &Slabs, fixed: &[(u32, f64)], rows: &mut BlockRows, rhs: &mut [f64]) {
    let n_owned = rows.owned.n_rows;
    let mut prescribed = Prescribed {
        is_fixed: vec![[false; 3]; n_owned + rows.ghost.n_cols],
        value: vec![[0.0; 3]; n_owned + rows.ghost.n_cols],
    };
    for &(dof, value) in fixed {
        let (node, component) = (dof as usize / 3, dof as usize % 3);
        prescribed.is_fixed[node][component] = true;
        prescribed.value[node][component] = value;
    }
    let (owned, ghost) = (&mut rows.owned, &mut rows.ghost);
    let owned_values = slabs.split(owned.values.as_chunks_mut().0, |row| owned.row_start[row]);
    let ghost_values = slabs.split(ghost.values.as_chunks_mut().0, |row| ghost.row_start[row]);
    let rhs = slabs.split(rhs.as_chunks_mut().0, |row| row);
    let jobs: Vec<_> = slabs
        .rows()
        .zip(owned_values)
        .zip(ghost_values)
        .zip(rhs)
        .collect();
    jobs.into_par_iter()
        .for_each(|(((slab, mut owned_values), mut ghost_values), rhs)| {
            for (row, rhs) in slab.zip(rhs) {
                let columns = &owned.columns[owned.row_start[row]..owned.row_start[row + 1]];
                let blocks = owned_values
                    .split_off_mut(..columns.len())
                    .unwrap_or_default();
                for (block, &column) in blocks.iter_mut().zip(columns) {
                    prescribed.eliminate(row, column as usize, block, rhs);
                }
                let columns = &ghost.columns[ghost.row_start[row]..ghost.row_start[row + 1]];
                let blocks = ghost_values
                    .split_off_mut(..columns.len())
                    .unwrap_or_default();
                for (block, &column) in blocks.iter_mut().zip(columns) {
                    prescribed.eliminate(row, n_owned + column as usize, block, rhs);
                }
                for (rhs, fixed) in rhs.iter_mut().zip(prescribed.is_fixed[row]) {
                    if fixed {
                        *rhs = 0.0;
                    }
                }
            }
        });
}

impl Prescribed {
    fn eliminate(&self, row: usize, column: usize, block: &mut [f64; 9], rhs: &mut [f64; 3]) {
        let (fixed_rows, fixed_columns) = (self.is_fixed[row], self.is_fixed[column]);
        if fixed_rows == [false; 3] && fixed_columns == [false; 3] {
            return;
        }
        for i in 0..3 {
            for j in 0..3 {
                let entry = &mut block[3 * i + j];
                if row == column && i == j && fixed_rows[i] {
                    // A node of no element has a zero diagonal; any other number keeps the matrix regular.
                    if *entry == 0.0 {
                        *entry = 1.0;
                    }
                } else if fixed_columns[j] {
                    rhs[i] -= *entry * self.value[column][j];
                    *entry = 0.0;
                } else if fixed_rows[i] {
                    *entry = 0.0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::constrain;
    use crate::assembly::test_models::{dense, mixed_mesh, model, split};
    use crate::assembly::{Pattern, assemble_stiffness};
    use fem_mesh::Comm;
    use fem_mesh::comm::run_threads;
    use nalgebra::{DMatrix, DVector};

    /// Prescribed degrees of freedom by global number.
    fn fixed(n_dofs: u64) -> Vec<(u64, f64)> {
        (0..n_dofs)
            .filter(|dof| dof % 7 < 2)
            .map(|dof| (dof, 0.01 * dof as f64))
            .collect()
    }

    /// The system of one rank, eliminated by the textbook on a dense matrix.
    fn expected() -> (DMatrix<f64>, DVector<f64>) {
        let comm = Comm::alone();
        let model = model(split(&comm, &mixed_mesh()));
        let (pattern, mut rows) = Pattern::new(&model.mesh).unwrap();
        assemble_stiffness(&comm, &model, &pattern, &mut rows).unwrap();
        let mut k = dense(&model.mesh, &rows);
        let mut f = DVector::from_fn(k.nrows(), |row, _| 1.0 + row as f64);
        let fixed = fixed(k.nrows() as u64);
        for &(dof, value) in &fixed {
            f -= k.column(dof as usize) * value;
        }
        for &(dof, _) in &fixed {
            let dof = dof as usize;
            let diagonal = k[(dof, dof)];
            k.row_mut(dof).fill(0.0);
            k.column_mut(dof).fill(0.0);
            k[(dof, dof)] = diagonal;
            f[dof] = 0.0;
        }
        (k, f)
    }

    #[test]
    fn elimination_on_ranks_agrees_with_the_dense_one() {
        let (k, f) = expected();
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let model = model(split(comm, &mixed_mesh()));
                let (pattern, mut rows) = Pattern::with_slabs(&model.mesh, 3).unwrap();
                assemble_stiffness(comm, &model, &pattern, &mut rows).unwrap();
                let nodes = &model.mesh.nodes;
                let mut local: Vec<(u32, f64)> = (fixed(3 * nodes.n_global()).into_iter())
                    .filter_map(|(dof, value)| {
                        let node = nodes.local(dof / 3)?;
                        Some((3 * node as u32 + (dof % 3) as u32, value))
                    })
                    .collect();
                local.sort_by_key(|&(dof, _)| dof);
                let first = 3 * nodes.offset() as usize;
                let n = 3 * nodes.n_owned();
                let mut rhs: Vec<f64> = (first..first + n).map(|row| 1.0 + row as f64).collect();
                constrain(pattern.slabs(), &local, &mut rows, &mut rhs);
                let error = (dense(&model.mesh, &rows).rows(first, n) - k.rows(first, n)).norm();
                assert!(error < 1e-13 * k.norm());
                assert!((DVector::from_vec(rhs) - f.rows(first, n)).norm() < 1e-12 * f.norm());
            });
        }
    }
}
