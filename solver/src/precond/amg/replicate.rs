//! A small distributed matrix, whole on every rank.
//!
//! Invariant: rows keep their global numbers.

use crate::linalg::{BlockCsr, DistMatrix};
use fem_mesh::Comm;

/// Collective. The lower half of the whole matrix on every rank.
pub(super) fn replicate<const C: usize>(comm: &Comm, a: &DistMatrix<C>) -> BlockCsr<f64, C> {
    let mine = a.with_global_columns();
    let lengths = mine.row_start.windows(2).map(|w| (w[1] - w[0]) as u64);
    let lengths = comm.all_gather(&lengths.collect::<Vec<_>>()).concat();
    let mut row_start = vec![0];
    for (row, length) in lengths.iter().enumerate() {
        row_start.push(row_start[row] + *length as usize);
    }
    BlockCsr {
        n_rows: lengths.len(),
        n_cols: lengths.len(),
        row_start,
        columns: comm.all_gather(&mine.columns).concat(),
        values: comm.all_gather(&mine.values).concat(),
    }
}

/// Collective. The whole of a vector on every rank.
pub(super) fn replicate_vector<const C: usize>(comm: &Comm, x: &[[f32; C]]) -> Vec<[f32; C]> {
    let parts = comm.all_gather(x.as_flattened());
    parts
        .iter()
        .flat_map(|part| part.as_chunks::<C>().0)
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{replicate, replicate_vector};
    use crate::linalg::sample::{distribute, lower_half, spring_grid};
    use fem_mesh::comm::run_threads;

    #[test]
    fn every_rank_gets_the_whole() {
        let a = spring_grid(4, 10.0);
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let matrix = distribute(comm, &a);
                assert_eq!(replicate(comm, &matrix), lower_half(&a));
                let mine: Vec<[f32; 2]> = (0..matrix.map().n_owned())
                    .map(|i| [matrix.map().global(i) as f32, -1.0])
                    .collect();
                let whole = replicate_vector(comm, &mine);
                assert!(
                    whole
                        .iter()
                        .enumerate()
                        .all(|(i, x)| *x == [i as f32, -1.0])
                );
            });
        }
    }
}
