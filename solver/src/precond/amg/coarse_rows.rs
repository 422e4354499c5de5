//! From sums of coarse blocks, scattered over slabs and ranks, to the rows of a distributed matrix.
//!
//! Blocks come in above the diagonal (by global number). The owner of a row adds up what slabs and ranks have, in that
//! order; then blocks are mirrored to the owners of the rows below the diagonal.
//!
//! Invariant: knows nothing of what the blocks were made of.

use super::sparse_row::SparseRow;
use crate::linalg::{BlockCsr, DistMatrix};
use fem_mesh::{Comm, IndexMap};
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use std::collections::HashMap;

/// Numbering of all coarse columns that this rank meets: those of an [`IndexMap`] first, others as they are entered.
#[derive(Clone)]
pub(super) struct Columns {
    coarse: IndexMap,
    globals: Vec<u64>,
    others: HashMap<u64, u32>,
}

impl Columns {
    pub(super) fn new(coarse: &IndexMap) -> Self {
        let globals = (0..coarse.n_local())
            .map(|local| coarse.global(local))
            .collect();
        Columns {
            coarse: coarse.clone(),
            globals,
            others: HashMap::new(),
        }
    }

    /// Number of a column, given a new one if it was not met before.
    pub(super) fn enter(&mut self, global: u64) -> u32 {
        if let Some(local) = self.coarse.local(global) {
            return local as u32;
        }
        *self.others.entry(global).or_insert_with(|| {
            self.globals.push(global);
            self.globals.len() as u32 - 1
        })
    }

    pub(super) fn len(&self) -> usize {
        self.globals.len()
    }

    /// Whether block (row, column) is on or above the diagonal of the whole matrix.
    #[inline(always)]
    pub(super) fn is_upper(&self, row: u32, column: u32) -> bool {
        self.globals[row as usize] <= self.globals[column as usize]
    }
}

/// Sums of blocks in some coarse rows.
pub(super) struct PartialRows<const C: usize> {
    /// Number of each row in [`Columns`].
    ids: Vec<u32>,
    rows: Vec<PartialRow<C>>,
}

/// One row, blocks in the order in which they first occurred.
#[derive(Clone, Default)]
struct PartialRow<const C: usize> {
    columns: Vec<u32>,
    blocks: Vec<[[f64; C]; C]>,
}

impl<const C: usize> PartialRows<C> {
    /// No rows.
    pub(super) fn new() -> Self {
        PartialRows {
            ids: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// A new row of zeros; its place, for [`PartialRows::block`].
    pub(super) fn start_row(&mut self, id: u32) -> u32 {
        self.ids.push(id);
        self.rows.push(PartialRow {
            columns: Vec::new(),
            blocks: Vec::new(),
        });
        self.rows.len() as u32 - 1
    }

    /// A new row with the blocks of `row`.
    pub(super) fn push_row(&mut self, id: u32, row: &SparseRow<C, C>) {
        self.ids.push(id);
        self.rows.push(PartialRow {
            columns: row.columns().to_vec(),
            blocks: row.blocks().to_vec(),
        });
    }

    /// The block in `column` of the row at `place`, zero at first.
    #[inline(always)]
    pub(super) fn block(&mut self, place: u32, column: u32) -> &mut [[f64; C]; C] {
        self.rows[place as usize].block(column)
    }
}

impl<const C: usize> PartialRow<C> {
    #[inline(always)]
    fn block(&mut self, column: u32) -> &mut [[f64; C]; C] {
        let at = match self.columns.iter().position(|c| *c == column) {
            Some(at) => at,
            None => {
                self.columns.push(column);
                self.blocks.push([[0.0; C]; C]);
                self.blocks.len() - 1
            }
        };
        &mut self.blocks[at]
    }

    fn add(&mut self, other: &PartialRow<C>) {
        for (&column, block) in other.columns.iter().zip(&other.blocks) {
            add_block(self.block(column), block);
        }
    }
}

fn add_block<const C: usize>(sum: &mut [[f64; C]; C], block: &[[f64; C]; C]) {
    for (sum, value) in sum.as_flattened_mut().iter_mut().zip(block.as_flattened()) {
        *sum += value;
    }
}

fn transposed<const C: usize>(block: &[[f64; C]; C]) -> [[f64; C]; C] {
    std::array::from_fn(|i| std::array::from_fn(|j| block[j][i]))
}

/// Collective. The distributed matrix of the sums `parts` (one a slab, in order).
///
/// Owned degrees of freedom that `is_alive` denies get the largest diagonal entry of their block, or 1.
pub(super) fn gather_rows<const C: usize>(
    comm: &Comm,
    columns: &Columns,
    parts: Vec<PartialRows<C>>,
    is_alive: impl Fn(usize, usize) -> bool,
) -> DistMatrix<C> {
    let n_owned = columns.coarse.n_owned();
    let mut columns = columns.clone();
    let mut rows = merge(&columns, parts);
    let foreign = exchange_foreign_rows(comm, &columns, &rows[n_owned..]);
    rows.truncate(n_owned);
    for (row, column, block) in foreign {
        let row = (row - columns.coarse.offset()) as usize;
        let column = columns.enter(column);
        add_block(rows[row].block(column), &block);
    }
    for (row, sums) in rows.iter_mut().enumerate() {
        fix_diagonal(sums.block(row as u32), |c| is_alive(row, c));
    }
    let mirrored = exchange_mirrored(comm, &columns, &rows);
    build(comm, &columns, &rows, &mirrored)
}

/// Symmetric to the last bit, and positive where a degree of freedom stands for nothing.
fn fix_diagonal<const C: usize>(block: &mut [[f64; C]; C], is_alive: impl Fn(usize) -> bool) {
    let other = transposed(block);
    for (value, other) in block
        .as_flattened_mut()
        .iter_mut()
        .zip(other.as_flattened())
    {
        *value = 0.5 * (*value + other);
    }
    let largest = (0..C).map(|c| block[c][c]).fold(0.0, f64::max);
    for c in (0..C).filter(|&c| !is_alive(c)) {
        (0..C).for_each(|d| {
            block[c][d] = 0.0;
            block[d][c] = 0.0;
        });
        block[c][c] = if largest > 0.0 { largest } else { 1.0 };
    }
}

/// The sums of all slabs in each owned row, then in each ghost row.
fn merge<const C: usize>(columns: &Columns, parts: Vec<PartialRows<C>>) -> Vec<PartialRow<C>> {
    let mut sums: Vec<PartialRow<C>> = vec![PartialRow::default(); columns.coarse.n_local()];
    for part in parts {
        for (id, row) in part.ids.into_iter().zip(part.rows) {
            let sum = &mut sums[id as usize];
            if sum.columns.is_empty() {
                *sum = row;
            } else {
                sum.add(&row);
            }
        }
    }
    sums
}

/// A block at a global row and column.
type Entry<const C: usize> = (u64, u64, [[f64; C]; C]);

/// Collective. Sends each block to a rank; the blocks that came in, by rank and in the order sent.
fn exchange_entries<const C: usize>(comm: &Comm, sends: Vec<Vec<Entry<C>>>) -> Vec<Entry<C>> {
    let keys = |list: &Vec<Entry<C>>| list.iter().flat_map(|e| [e.0, e.1]).collect::<Vec<u64>>();
    let values = |list: &Vec<Entry<C>>| {
        list.iter()
            .flat_map(|e| e.2.as_flattened())
            .copied()
            .collect::<Vec<f64>>()
    };
    let keys = comm.all_to_all(sends.iter().map(keys).collect());
    let values = comm.all_to_all(sends.iter().map(values).collect());
    let mut entries = Vec::new();
    for (keys, values) in keys.iter().zip(&values) {
        let blocks = values.as_chunks::<C>().0.as_chunks::<C>().0;
        let keys = keys.as_chunks::<2>().0;
        entries.extend(
            keys.iter()
                .zip(blocks)
                .map(|(key, block)| (key[0], key[1], *block)),
        );
    }
    entries
}

/// Collective. Sends sums in ghost rows to the owners of the rows, and returns those that came in.
fn exchange_foreign_rows<const C: usize>(
    comm: &Comm,
    columns: &Columns,
    ghost_rows: &[PartialRow<C>],
) -> Vec<Entry<C>> {
    let coarse = &columns.coarse;
    let mut sends = vec![Vec::new(); comm.n_ranks()];
    for (ghost, (&owner, sum)) in coarse.ghost_owners().iter().zip(ghost_rows).enumerate() {
        let entries = sum.columns.iter().zip(&sum.blocks).map(|(&column, block)| {
            (
                coarse.ghosts()[ghost],
                columns.globals[column as usize],
                *block,
            )
        });
        sends[owner as usize].extend(entries);
    }
    exchange_entries(comm, sends)
}

/// Collective. Sends the transposes of blocks above the diagonal to the ranks that own the rows below it.
fn exchange_mirrored<const C: usize>(
    comm: &Comm,
    columns: &Columns,
    rows: &[PartialRow<C>],
) -> Vec<Entry<C>> {
    let n_owned = columns.coarse.n_owned();
    let ends: Vec<u64> = comm
        .all_gather(&[columns.coarse.offset() + n_owned as u64])
        .concat();
    let mut sends = vec![Vec::new(); comm.n_ranks()];
    for (row, sums) in rows.iter().enumerate() {
        for (&column, block) in sums.columns.iter().zip(&sums.blocks) {
            if column as usize >= n_owned {
                let global = columns.globals[column as usize];
                let owner = ends.partition_point(|&end| end <= global);
                let row = columns.coarse.global(row);
                sends[owner].push((global, row, transposed(block)));
            }
        }
    }
    exchange_entries(comm, sends)
}

/// Where a block of the finished matrix comes from.
#[derive(Clone, Copy)]
enum Source {
    /// Block `at` of a row above the diagonal.
    Upper { row: u32, at: u32 },
    /// Its transpose.
    Mirrored { row: u32, at: u32 },
    /// An entry that came from another rank.
    Received(u32),
}

/// Collective. Puts rows above the diagonal and mirrored blocks together.
fn build<const C: usize>(
    comm: &Comm,
    columns: &Columns,
    rows: &[PartialRow<C>],
    received: &[Entry<C>],
) -> DistMatrix<C> {
    let (n_owned, offset) = (columns.coarse.n_owned(), columns.coarse.offset());
    let mut sources: Vec<Vec<(u64, Source)>> = vec![Vec::new(); n_owned];
    for (row, sums) in rows.iter().enumerate() {
        for (at, &column) in sums.columns.iter().enumerate() {
            let (row, at) = (row as u32, at as u32);
            let global = columns.globals[column as usize];
            sources[row as usize].push((global, Source::Upper { row, at }));
            if (column as usize) < n_owned && column != row {
                let mirrored = Source::Mirrored { row, at };
                sources[column as usize].push((offset + u64::from(row), mirrored));
            }
        }
    }
    for (at, entry) in received.iter().enumerate() {
        sources[(entry.0 - offset) as usize].push((entry.1, Source::Received(at as u32)));
    }
    let sources: Vec<Vec<(u64, Source)>> = (sources.into_par_iter())
        .map(|mut row| {
            row.sort_unstable_by_key(|(column, _)| *column);
            row
        })
        .collect();
    let is_owned = |global: u64| (offset..offset + n_owned as u64).contains(&global);
    let all = sources.iter().flatten().map(|(column, _)| *column);
    let mut ghosts: Vec<u64> = all.filter(|&column| !is_owned(column)).collect();
    ghosts.sort_unstable();
    ghosts.dedup();
    let map = IndexMap::new(comm, n_owned, ghosts);
    let part = |of_owned: bool| {
        let n_columns = if of_owned { n_owned } else { map.n_ghosts() };
        let first = if of_owned { 0 } else { n_owned };
        let chosen: Vec<Vec<(u32, Source)>> = (sources.par_iter())
            .map(|row| {
                let mine = row
                    .iter()
                    .filter(|(column, _)| is_owned(*column) == of_owned);
                let local = |global| map.local(global).map_or(0, |local| (local - first) as u32);
                mine.map(|&(column, source)| (local(column), source))
                    .collect()
            })
            .collect();
        fill(n_columns, &chosen, rows, received)
    };
    let (owned, ghost) = (part(true), part(false));
    DistMatrix::new(comm, map, owned, ghost)
}

fn fill<const C: usize>(
    n_columns: usize,
    chosen: &[Vec<(u32, Source)>],
    rows: &[PartialRow<C>],
    received: &[Entry<C>],
) -> BlockCsr<f64, C> {
    let mut row_start = vec![0];
    for (row, list) in chosen.iter().enumerate() {
        row_start.push(row_start[row] + list.len());
    }
    let columns = chosen.iter().flatten().map(|(column, _)| *column).collect();
    let mut values = Vec::with_capacity(row_start[chosen.len()] * C * C);
    for (_, source) in chosen.iter().flatten() {
        let block = match *source {
            Source::Upper { row, at } => rows[row as usize].blocks[at as usize],
            Source::Mirrored { row, at } => transposed(&rows[row as usize].blocks[at as usize]),
            Source::Received(at) => received[at as usize].2,
        };
        values.extend_from_slice(block.as_flattened());
    }
    BlockCsr {
        n_rows: chosen.len(),
        n_cols: n_columns,
        row_start,
        columns,
        values,
    }
}
