//! Prescribed displacements, eliminated so that the matrix stays symmetric.
//!
//! Rows and columns of prescribed degrees of freedom become zero but for their diagonal entry, which keeps its value
//! (a scaling that fits its neighbors), and the right-hand side takes over what they caused. The solver then finds the
//! free displacements and zeros at the prescribed ones, whose values are added afterwards.
//!
//! Invariant: each rank changes its own rows; nothing is communicated.

use super::pattern::BlockRows;
use super::slabs::Slabs;
use crate::linalg::BlockCsr;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Prescribed values by local node.
struct Prescribed {
    /// Bit c: whether component c is prescribed.
    fixed: Vec<u8>,
    value: Vec<[f64; 3]>,
}

/// Eliminates the degrees of freedom `fixed` (local number 3 * node + component, ghosts included, and value, m) from
/// `rows` and `rhs` (3 an owned node). On return `rhs` is 0 at prescribed degrees of freedom.
pub fn constrain(slabs: &Slabs, fixed: &[(u32, f64)], rows: &mut BlockRows, rhs: &mut [f64]) {
    let n_owned = rows.lower.n_rows;
    let mut prescribed = Prescribed {
        fixed: vec![0; n_owned + rows.ghost.n_cols],
        value: vec![[0.0; 3]; n_owned + rows.ghost.n_cols],
    };
    for &(dof, value) in fixed {
        let (node, component) = (dof as usize / 3, dof as usize % 3);
        prescribed.fixed[node] |= 1 << component;
        prescribed.value[node][component] = value;
    }
    let rhs = rhs.as_chunks_mut().0;
    prescribed.move_blocks_above_diagonal(&rows.lower, rhs);
    let (lower, ghost) = (&mut rows.lower, &mut rows.ghost);
    let lower_values = slabs.split(lower.values.as_chunks_mut().0, |row| lower.row_start[row]);
    let ghost_values = slabs.split(ghost.values.as_chunks_mut().0, |row| ghost.row_start[row]);
    let rhs = slabs.split(rhs, |row| row);
    let jobs: Vec<_> = slabs
        .rows()
        .zip(lower_values)
        .zip(ghost_values)
        .zip(rhs)
        .collect();
    let (lower, ghost) = (
        (&lower.row_start, &lower.columns),
        (&ghost.row_start, &ghost.columns),
    );
    jobs.into_par_iter()
        .for_each(|(((slab, mut lower_values), mut ghost_values), rhs)| {
            for (row, rhs) in slab.zip(rhs) {
                for ((starts, columns), values, first) in [
                    (lower, &mut lower_values, 0),
                    (ghost, &mut ghost_values, n_owned),
                ] {
                    let columns = &columns[starts[row]..starts[row + 1]];
                    let blocks = values.split_off_mut(..columns.len()).unwrap_or_default();
                    for (block, &column) in blocks.iter_mut().zip(columns) {
                        prescribed.eliminate(row, first + column as usize, block, rhs);
                    }
                }
                for (component, rhs) in rhs.iter_mut().enumerate() {
                    if prescribed.fixed[row] >> component & 1 == 1 {
                        *rhs = 0.0;
                    }
                }
            }
        });
}

impl Prescribed {
    /// Takes over into `rhs` what prescribed values cause in earlier rows, whose blocks are stored as transposes in the
    /// rows of these values.
    fn move_blocks_above_diagonal(&self, lower: &BlockCsr<f64, 3>, rhs: &mut [[f64; 3]]) {
        let moved = (0..lower.n_rows).filter(|&row| self.value[row] != [0.0; 3]);
        for row in moved {
            let blocks = lower.row(row);
            for k in blocks.start..blocks.end - 1 {
                let rhs = &mut rhs[lower.columns[k] as usize];
                for (at, entry) in lower.block(k).iter().enumerate() {
                    rhs[at % 3] -= entry * self.value[row][at / 3];
                }
            }
        }
    }

    #[inline(always)]
    fn eliminate(&self, row: usize, column: usize, block: &mut [f64; 9], rhs: &mut [f64; 3]) {
        let (fixed_rows, fixed_columns) = (self.fixed[row], self.fixed[column]);
        if fixed_rows | fixed_columns == 0 {
            return;
        }
        for (i, j) in (0..9).map(|at| (at / 3, at % 3)) {
            let entry = &mut block[3 * i + j];
            let (is_fixed_row, is_fixed_column) =
                (fixed_rows >> i & 1 == 1, fixed_columns >> j & 1 == 1);
            if row == column && i == j && is_fixed_row {
                // A node of no element has a zero diagonal; any other number keeps the matrix regular.
                if *entry == 0.0 {
                    *entry = 1.0;
                }
            } else if is_fixed_column {
                rhs[i] -= *entry * self.value[column][j];
                *entry = 0.0;
            } else if is_fixed_row {
                *entry = 0.0;
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
