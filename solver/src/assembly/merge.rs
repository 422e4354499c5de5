//! Blocks added to a matrix that has no place for them yet.
//!
//! Invariant: knows rows and columns of blocks; not where they come from.

use super::elimination::Block;
use crate::linalg::BlockCsr;

/// A block to be added: row, column, values.
pub(super) type Added = (u32, u32, Block);

/// The blocks of `old` for which `new_column(row, column)` names a new column, with those of `added`; blocks at one place
/// are added up in the order given.
pub(super) fn merge_part(
    old: &BlockCsr<f64, 3>,
    n_cols: usize,
    new_column: impl Fn(usize, usize) -> Option<u32>,
    mut added: Vec<Added>,
) -> BlockCsr<f64, 3> {
    added.sort_by_key(|&(row, column, _)| (row, column));
    added.dedup_by(|next, sum| {
        let is_same = (next.0, next.1) == (sum.0, sum.1);
        if is_same {
            add(&mut sum.2, &next.2);
        }
        is_same
    });
    let mut row_start = vec![0];
    let mut columns: Vec<u32> = Vec::with_capacity(old.columns.len() + added.len());
    let mut values: Vec<f64> = Vec::with_capacity(9 * (old.columns.len() + added.len()));
    let blocks = old.values.as_chunks::<9>().0;
    let mut rest = &added[..];
    for row in 0..old.n_rows {
        let (mut here, after) = rest.split_at(rest.partition_point(|a| a.0 as usize <= row));
        rest = after;
        for k in old.row(row) {
            let Some(column) = new_column(row, old.columns[k] as usize) else {
                continue;
            };
            let (before, from) = here.split_at(here.partition_point(|a| a.1 < column));
            for (_, column, block) in before {
                columns.push(*column);
                values.extend_from_slice(block);
            }
            here = from;
            let mut block = blocks[k];
            if let Some(((_, same, more), after)) = here.split_first()
                && *same == column
            {
                add(&mut block, more);
                here = after;
            }
            columns.push(column);
            values.extend_from_slice(&block);
        }
        for (_, column, block) in here {
            columns.push(*column);
            values.extend_from_slice(block);
        }
        row_start.push(columns.len());
    }
    BlockCsr {
        n_rows: old.n_rows,
        n_cols,
        row_start,
        columns,
        values,
    }
}

fn add(sum: &mut Block, more: &Block) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

#[cfg(test)]
mod tests {
    use super::merge_part;
    use crate::linalg::BlockCsr;

    #[test]
    fn blocks_find_their_places_and_add_up() {
        let old = BlockCsr {
            n_rows: 2,
            n_cols: 3,
            row_start: vec![0, 2, 3],
            columns: vec![0, 2, 1],
            values: [[1.0; 9], [2.0; 9], [3.0; 9]].concat(),
        };
        let added = vec![
            (1, 4, [7.0; 9]),
            (0, 1, [5.0; 9]),
            (0, 3, [6.0; 9]),
            (1, 4, [8.0; 9]),
        ];
        // Column 0 goes away, 1 and 2 become 2 and 3.
        let new_column = |_, column| [None, Some(2), Some(3)][column];
        let merged = merge_part(&old, 5, new_column, added);
        assert!(merged.is_well_formed());
        assert_eq!(merged.row_start, [0, 2, 4]);
        assert_eq!(merged.columns, [1, 3, 2, 4]);
        let firsts: Vec<f64> = (0..4).map(|k| merged.block(k)[0]).collect();
        assert_eq!(firsts, [5.0, 8.0, 3.0, 15.0]);
    }
}
