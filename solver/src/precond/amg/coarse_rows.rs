//! From sums of coarse blocks, scattered over slabs and ranks, to the rows of a distributed matrix.
//!
//! The owner of a row adds up what slabs and ranks have, in that order; then blocks between two ranks are mirrored to the
//! owner of the other row.
//!
//! Invariant: knows nothing of what the blocks were made of.

use super::block_sums::BlockSums;
use crate::linalg::{BlockCsr, DistMatrix};
use fem_mesh::{Comm, IndexMap};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::collections::HashMap;
use std::ops::Range;

/// Rows that a thread takes at a time.
const ROWS_PER_TASK: usize = 128;

/// Numbering of all coarse columns that this rank meets: those of an [`IndexMap`] first, others as they are entered.
#[derive(Clone)]
pub(super) struct Columns {
    coarse: IndexMap,
    n_owned: u32,
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
            n_owned: coarse.n_owned() as u32,
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

    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.globals.len()
    }

    /// Whether block (row, column) is on or below the diagonal of the whole matrix.
    #[inline(always)]
    pub(super) fn is_lower(&self, row: u32, column: u32) -> bool {
        // Owned numbers ascend with the global ones.
        if row.max(column) < self.n_owned {
            return row >= column;
        }
        self.globals[row as usize] >= self.globals[column as usize]
    }
}

/// Collective. The distributed matrix W + Wᵀ of the sums `slabs`, in order.
///
/// Owned degrees of freedom that `is_alive` denies get the largest diagonal entry of their block, or 1.
pub(super) fn gather_rows<const C: usize>(
    comm: &Comm,
    columns: &Columns,
    slabs: Vec<BlockSums<C>>,
    is_alive: impl Fn(usize, usize) -> bool + Sync,
) -> DistMatrix<C> {
    let (n_owned, offset) = (columns.coarse.n_owned(), columns.coarse.offset());
    let ends = comm.all_gather(&[offset + n_owned as u64]);
    let owners = Owners {
        ends: ends.concat(),
    };
    let mut parts: Vec<Part<C>> = (slabs.into_iter().map(BlockSums::into_parts))
        .map(|(keys, blocks)| Part { keys, blocks })
        .collect();
    let foreign = foreign_sums(columns, &parts);
    let foreign = exchange(comm, &owners, foreign);
    let mut columns = columns.clone();
    parts.push(Part {
        keys: (foreign.iter())
            .map(|&(row, column, _)| [(row - offset) as u32, columns.enter(column)])
            .collect(),
        blocks: foreign.iter().map(|entry| entry.2).collect(),
    });
    let pieces = Pieces::new(0..n_owned, &parts);
    let lower = pieces.lower_half(&is_alive);
    let mut between: Vec<Entry<C>> = Vec::new();
    for row in 0..n_owned {
        let behind = pieces
            .row(row)
            .partition_point(|p| (p.column as usize) < n_owned);
        for run in pieces.row(row)[behind..].chunk_by(|a, b| a.column == b.column) {
            let column = columns.globals[run[0].column as usize];
            between.push((offset + row as u64, column, pieces.sum(run)));
        }
    }
    drop(pieces);
    drop(parts);
    let mirrored = between
        .iter()
        .map(|(row, column, block)| (*column, *row, transposed(block)));
    between.extend(exchange(comm, &owners, mirrored.collect()));
    let mut ghosts: Vec<u64> = between.iter().map(|entry| entry.1).collect();
    ghosts.sort_unstable();
    ghosts.dedup();
    let place = |column: u64| ghosts.partition_point(|&ghost| ghost < column) as u32;
    let blocks = between
        .into_iter()
        .map(|(row, column, block)| ((row - offset) as u32, place(column), block));
    let ghost = BlockCsr::from_blocks(n_owned, ghosts.len(), blocks.collect());
    DistMatrix::new(comm, IndexMap::new(comm, n_owned, ghosts), lower, ghost)
}

/// The sums of one slab, or those that came from other ranks.
struct Part<const C: usize> {
    /// Row and column of each block, as [`Columns`] numbers them.
    keys: Vec<[u32; 2]>,
    blocks: Vec<[[f64; C]; C]>,
}

/// A block of one part in a row.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    column: u32,
    part: u32,
    place: u32,
}

/// The blocks of all parts in some rows, sorted by columns and parts.
struct Pieces<'a, const C: usize> {
    parts: &'a [Part<C>],
    row_start: Vec<usize>,
    pieces: Vec<Piece>,
}

impl<'a, const C: usize> Pieces<'a, C> {
    /// Of the rows `rows`.
    fn new(rows: Range<usize>, parts: &'a [Part<C>]) -> Self {
        let mut row_start = vec![0; rows.len() + 2];
        let all = || parts.iter().flat_map(|part| &part.keys);
        for &[row, _] in all().filter(|key| rows.contains(&(key[0] as usize))) {
            row_start[row as usize - rows.start + 2] += 1;
        }
        for row in 0..rows.len() {
            row_start[row + 2] += row_start[row + 1];
        }
        // Entry r + 1 is where row r goes on; in the end it is where row r + 1 begins.
        let mut pieces = vec![Piece::default(); row_start[rows.len() + 1]];
        for (number, part) in parts.iter().enumerate() {
            for (place, &[row, column]) in part.keys.iter().enumerate() {
                if rows.contains(&(row as usize)) {
                    let next = &mut row_start[row as usize - rows.start + 1];
                    pieces[*next] = Piece {
                        column,
                        part: number as u32,
                        place: place as u32,
                    };
                    *next += 1;
                }
            }
        }
        row_start.pop();
        let tasks = split_rows(&row_start, 1, &mut pieces);
        tasks.into_par_iter().for_each(|(rows, pieces)| {
            let first = row_start[rows.start];
            for row in rows {
                pieces[row_start[row] - first..row_start[row + 1] - first].sort_unstable();
            }
        });
        Pieces {
            parts,
            row_start,
            pieces,
        }
    }

    /// Pieces of a row, counted from the first of the rows.
    fn row(&self, row: usize) -> &[Piece] {
        &self.pieces[self.row_start[row]..self.row_start[row + 1]]
    }

    /// Sum of pieces, in the order of the parts.
    fn sum(&self, pieces: &[Piece]) -> [[f64; C]; C] {
        let block = |piece: &Piece| &self.parts[piece.part as usize].blocks[piece.place as usize];
        let mut sum = *block(&pieces[0]);
        pieces[1..]
            .iter()
            .for_each(|piece| add_block(&mut sum, block(piece)));
        sum
    }

    /// The matrix in the columns of the rows, which begin at 0.
    fn lower_half(&self, is_alive: &(impl Fn(usize, usize) -> bool + Sync)) -> BlockCsr<f64, C> {
        let n_rows = self.row_start.len() - 1;
        let mut row_start = Vec::with_capacity(n_rows + 1);
        row_start.push(0);
        for row in 0..n_rows {
            // The diagonal block is stored even where nothing was summed up.
            let below = self
                .row(row)
                .iter()
                .take_while(|p| (p.column as usize) < row);
            let mut last = u32::MAX;
            let n_below = below
                .filter(|p| std::mem::replace(&mut last, p.column) != p.column)
                .count();
            row_start.push(row_start[row] + n_below + 1);
        }
        let mut columns = vec![0; row_start[n_rows]];
        let mut values = vec![0.0; row_start[n_rows] * C * C];
        let column_tasks = split_rows(&row_start, 1, &mut columns);
        let value_tasks = split_rows(&row_start, C * C, &mut values);
        let tasks: Vec<_> = column_tasks.into_iter().zip(value_tasks).collect();
        tasks
            .into_par_iter()
            .for_each(|((rows, columns), (_, values))| {
                let blocks = values.as_chunks_mut::<C>().0.as_chunks_mut::<C>().0;
                let mut targets = columns.iter_mut().zip(blocks);
                for row in rows {
                    self.fill_row(row, &mut targets, |c| is_alive(row, c));
                }
            });
        BlockCsr {
            n_rows,
            n_cols: n_rows,
            row_start,
            columns,
            values,
        }
    }

    /// One row of the lower half into the next `targets`.
    fn fill_row<'t>(
        &self,
        row: usize,
        targets: &mut impl Iterator<Item = (&'t mut u32, &'t mut [[f64; C]; C])>,
        is_alive: impl Fn(usize) -> bool,
    ) {
        let mut diagonal = [[0.0; C]; C];
        let pieces = self.row(row);
        let runs = pieces.chunk_by(|a, b| a.column == b.column);
        for run in runs.take_while(|run| run[0].column as usize <= row) {
            if run[0].column as usize == row {
                diagonal = self.sum(run);
            } else if let Some((column, block)) = targets.next() {
                *column = run[0].column;
                *block = self.sum(run);
            }
        }
        finish_diagonal(&mut diagonal, is_alive);
        if let Some((column, block)) = targets.next() {
            *column = row as u32;
            *block = diagonal;
        }
    }
}

/// Pieces of `values`, `size` of them for each entry of the rows, for tasks of a few rows each.
fn split_rows<'v, T>(
    row_start: &[usize],
    size: usize,
    mut values: &'v mut [T],
) -> Vec<(Range<usize>, &'v mut [T])> {
    let n_rows = row_start.len() - 1;
    let mut tasks = Vec::with_capacity(n_rows.div_ceil(ROWS_PER_TASK));
    for first in (0..n_rows).step_by(ROWS_PER_TASK) {
        let end = n_rows.min(first + ROWS_PER_TASK);
        let (piece, rest) = values.split_at_mut((row_start[end] - row_start[first]) * size);
        tasks.push((first..end, piece));
        values = rest;
    }
    tasks
}

fn add_block<const C: usize>(sum: &mut [[f64; C]; C], block: &[[f64; C]; C]) {
    for (sum, value) in sum.as_flattened_mut().iter_mut().zip(block.as_flattened()) {
        *sum += value;
    }
}

fn transposed<const C: usize>(block: &[[f64; C]; C]) -> [[f64; C]; C] {
    std::array::from_fn(|i| std::array::from_fn(|j| block[j][i]))
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

/// A block at a global row and column.
type Entry<const C: usize> = (u64, u64, [[f64; C]; C]);

/// Sums in rows of other ranks.
fn foreign_sums<const C: usize>(columns: &Columns, parts: &[Part<C>]) -> Vec<Entry<C>> {
    let n_owned = columns.coarse.n_owned();
    let pieces = Pieces::new(n_owned..columns.len(), parts);
    let mut sums = Vec::new();
    for (row, &global) in columns.globals[n_owned..].iter().enumerate() {
        for run in pieces.row(row).chunk_by(|a, b| a.column == b.column) {
            let column = columns.globals[run[0].column as usize];
            sums.push((global, column, pieces.sum(run)));
        }
    }
    sums
}

/// Collective. Sends each block to the owner of its row; the blocks that came in, by rank and in the order sent.
fn exchange<const C: usize>(comm: &Comm, owners: &Owners, entries: Vec<Entry<C>>) -> Vec<Entry<C>> {
    let mut keys = vec![Vec::new(); comm.n_ranks()];
    let mut values = vec![Vec::new(); comm.n_ranks()];
    for (row, column, block) in &entries {
        let owner = owners.of(*row);
        keys[owner].extend([*row, *column]);
        values[owner].extend_from_slice(block.as_flattened());
    }
    let (keys, values) = (
        comm.all_to_all(keys).concat(),
        comm.all_to_all(values).concat(),
    );
    let blocks = values.as_chunks::<C>().0.as_chunks::<C>().0;
    let keys = keys.as_chunks::<2>().0.iter();
    let received = keys.zip(blocks);
    received
        .map(|(key, block)| (key[0], key[1], *block))
        .collect()
}
