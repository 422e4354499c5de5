//! From sums of coarse blocks, scattered over slabs and ranks, to the rows of a distributed matrix.
//!
//! What comes in is W, of which the matrix is W + Wᵀ: a block on or below the diagonal (by global number) is summed up as
//! it is, one above the diagonal transposed in the row of its column. The owner of a row adds up what slabs and ranks
//! have, in that order; then blocks between two ranks are mirrored to the owner of the other row.
//!
//! Invariant: knows nothing of what the blocks were made of.

use crate::linalg::{BlockCsr, DistMatrix};
use fem_mesh::{Comm, IndexMap};
use rayon::iter::{IntoParallelRefMutIterator, ParallelIterator};
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

    /// Whether block (row, column) is on or below the diagonal of the whole matrix.
    #[inline(always)]
    fn is_lower(&self, row: u32, column: u32) -> bool {
        self.globals[row as usize] >= self.globals[column as usize]
    }
}

/// Mark of a row that has not been met yet.
const NO_PLACE: u32 = u32::MAX;

/// Sums of blocks in some coarse rows, on and below the diagonal.
pub(super) struct PartialRows<'a, const C: usize> {
    numbering: &'a Columns,
    /// Place of each row, by its number in [`Columns`].
    place_of: Vec<u32>,
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

impl<'a, const C: usize> PartialRows<'a, C> {
    /// No rows.
    pub(super) fn new(numbering: &'a Columns) -> Self {
        PartialRows {
            numbering,
            place_of: vec![NO_PLACE; numbering.len()],
            ids: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Where the block (`row`, `column`) of W is summed up, zero at first, and whether its transpose is meant.
    #[inline(always)]
    pub(super) fn block(&mut self, row: u32, column: u32) -> (&mut [[f64; C]; C], bool) {
        let is_lower = self.numbering.is_lower(row, column);
        let (row, column) = if is_lower {
            (row, column)
        } else {
            (column, row)
        };
        let place = &mut self.place_of[row as usize];
        if *place == NO_PLACE {
            *place = self.ids.len() as u32;
            self.ids.push(row);
            self.rows.push(PartialRow::default());
        }
        (self.rows[*place as usize].block(column), !is_lower)
    }

    /// All blocks, by row and column.
    pub(super) fn for_each(&mut self, mut f: impl FnMut(u32, u32, &mut [[f64; C]; C])) {
        for (&id, row) in self.ids.iter().zip(&mut self.rows) {
            for (&column, block) in row.columns.iter().zip(&mut row.blocks) {
                f(id, column, block);
            }
        }
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

/// Collective. The distributed matrix W + Wᵀ of the sums `parts` (one a slab, in order).
///
/// Owned degrees of freedom that `is_alive` denies get the largest diagonal entry of their block, or 1.
pub(super) fn gather_rows<const C: usize>(
    comm: &Comm,
    columns: &Columns,
    parts: Vec<PartialRows<C>>,
    is_alive: impl Fn(usize, usize) -> bool,
) -> DistMatrix<C> {
    let n_owned = columns.coarse.n_owned();
    let ends = comm.all_gather(&[columns.coarse.offset() + n_owned as u64]);
    let owners = Owners {
        ends: ends.concat(),
    };
    let mut rows = merge(columns, parts);
    let foreign = exchange_foreign_rows(comm, columns, &owners, &rows[n_owned..]);
    rows.truncate(n_owned);
    let mut columns = columns.clone();
    for (row, column, block) in foreign {
        let row = (row - columns.coarse.offset()) as usize;
        let column = columns.enter(column);
        add_block(rows[row].block(column), &block);
    }
    for (row, sums) in rows.iter_mut().enumerate() {
        finish_diagonal(sums.block(row as u32), |c| is_alive(row, c));
    }
    let mirrored = exchange_mirrored(comm, &columns, &owners, &rows);
    build(comm, &columns, &rows, &mirrored)
}

/// Who owns which global row.
struct Owners {
    /// End of the rows of each rank.
    ends: Vec<u64>,
}

impl Owners {
    fn of(&self, global: u64) -> usize {
        self.ends.partition_point(|&end| end <= global)
    }
}

/// The sum of a block of W and its transpose, positive where a degree of freedom stands for nothing.
fn finish_diagonal<const C: usize>(block: &mut [[f64; C]; C], is_alive: impl Fn(usize) -> bool) {
    let other = transposed(block);
    add_block(block, &other);
    let largest = (0..C).map(|c| block[c][c]).fold(0.0, f64::max);
    for c in (0..C).filter(|&c| !is_alive(c)) {
        (0..C).for_each(|d| {
            block[c][d] = 0.0;
            block[d][c] = 0.0;
        });
        block[c][c] = if largest > 0.0 { largest } else { 1.0 };
    }
}

/// The sums of all slabs in each row of [`Columns`].
fn merge<const C: usize>(columns: &Columns, parts: Vec<PartialRows<C>>) -> Vec<PartialRow<C>> {
    let mut sums: Vec<PartialRow<C>> = vec![PartialRow::default(); columns.len()];
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

/// Collective. Sends the sums in `rows`, those behind the owned ones, to the owners of the rows, and returns those that
/// came in.
fn exchange_foreign_rows<const C: usize>(
    comm: &Comm,
    columns: &Columns,
    owners: &Owners,
    rows: &[PartialRow<C>],
) -> Vec<Entry<C>> {
    let mut sends = vec![Vec::new(); comm.n_ranks()];
    let globals = &columns.globals[columns.coarse.n_owned()..];
    for (&global, sum) in globals.iter().zip(rows) {
        let entries = sum.columns.iter().zip(&sum.blocks);
        let entries =
            entries.map(|(&column, block)| (global, columns.globals[column as usize], *block));
        sends[owners.of(global)].extend(entries);
    }
    exchange_entries(comm, sends)
}

/// Collective. Sends the transposes of blocks in columns of other ranks to these.
fn exchange_mirrored<const C: usize>(
    comm: &Comm,
    columns: &Columns,
    owners: &Owners,
    rows: &[PartialRow<C>],
) -> Vec<Entry<C>> {
    let n_owned = columns.coarse.n_owned();
    let mut sends = vec![Vec::new(); comm.n_ranks()];
    for (row, sums) in rows.iter().enumerate() {
        for (&column, block) in sums.columns.iter().zip(&sums.blocks) {
            if column as usize >= n_owned {
                let global = columns.globals[column as usize];
                let row = columns.coarse.global(row);
                sends[owners.of(global)].push((global, row, transposed(block)));
            }
        }
    }
    exchange_entries(comm, sends)
}

/// Where a block of the finished matrix comes from.
#[derive(Clone, Copy)]
enum Source {
    /// Block `at` of a row.
    Summed { row: u32, at: u32 },
    /// An entry that came from another rank.
    Received(u32),
}

/// Collective. Puts the sums of the owned rows and mirrored blocks together.
fn build<const C: usize>(
    comm: &Comm,
    columns: &Columns,
    rows: &[PartialRow<C>],
    received: &[Entry<C>],
) -> DistMatrix<C> {
    let (n_owned, offset) = (columns.coarse.n_owned(), columns.coarse.offset());
    let mut in_owned: Vec<Vec<(u32, Source)>> = vec![Vec::new(); n_owned];
    let mut in_ghosts: Vec<Vec<(u64, Source)>> = vec![Vec::new(); n_owned];
    for (row, sums) in rows.iter().enumerate() {
        for (at, &column) in sums.columns.iter().enumerate() {
            let source = Source::Summed {
                row: row as u32,
                at: at as u32,
            };
            if (column as usize) < n_owned {
                in_owned[row].push((column, source));
            } else {
                in_ghosts[row].push((columns.globals[column as usize], source));
            }
        }
    }
    for (at, entry) in received.iter().enumerate() {
        in_ghosts[(entry.0 - offset) as usize].push((entry.1, Source::Received(at as u32)));
    }
    in_owned
        .par_iter_mut()
        .for_each(|row| row.sort_unstable_by_key(|(column, _)| *column));
    let mut ghosts: Vec<u64> = in_ghosts
        .iter()
        .flatten()
        .map(|(global, _)| *global)
        .collect();
    ghosts.sort_unstable();
    ghosts.dedup();
    let in_ghosts: Vec<Vec<(u32, Source)>> = (in_ghosts.into_iter())
        .map(|row| {
            let place = |global: u64| ghosts.partition_point(|&ghost| ghost < global) as u32;
            let mut row: Vec<_> = row
                .into_iter()
                .map(|(g, source)| (place(g), source))
                .collect();
            row.sort_unstable_by_key(|(column, _)| *column);
            row
        })
        .collect();
    let lower = fill(n_owned, &in_owned, rows, received);
    let ghost = fill(ghosts.len(), &in_ghosts, rows, received);
    let map = IndexMap::new(comm, n_owned, ghosts);
    DistMatrix::new(comm, map, lower, ghost)
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
            Source::Summed { row, at } => rows[row as usize].blocks[at as usize],
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
