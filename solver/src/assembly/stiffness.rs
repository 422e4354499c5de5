//! The threaded element loop: stiffness of all elements into this rank's rows.
//!
//! Each thread computes the cells of its slab of rows in chunks that stay in cache, batched by type, and adds them in
//! ascending order of cells (see [`super::slabs`]). Batches are for isotropic displacement elements; all others are
//! computed one by one.
//!
//! Invariant: writes rows of owned nodes only; communicates nothing but the news of inverted elements.

use super::pattern::{BlockRows, Pattern, SlabPositions, is_stored};
use super::slabs::cells_touching;
use crate::conditions::Conditions;
use crate::element::formulation::{is_batched, rule};
use crate::element::general::Element;
use crate::element::solid::{Elements, StiffnessKernel, stiffness_len};
use crate::element::{GeneralElement, Hourglass, MAX_NODES, Purpose, Tabulation};
use crate::model::Model;
use fem_mesh::{CellType, Comm, Error, Result};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// Cells computed before their blocks are added to the matrix.
const CHUNK: usize = 16;

/// Collective. Sets `rows`, which were made with `pattern`, to the stiffness of all local cells, N/m.
///
/// # Errors
/// Elements whose Jacobian determinant is not positive at every quadrature point, by their numbers in the input.
pub fn assemble_stiffness(
    comm: &Comm,
    model: &Model,
    pattern: &Pattern,
    rows: &mut BlockRows,
) -> Result<()> {
    let mesh = &model.mesh;
    let laws = CellLaws::new(model);
    let slabs = pattern.slabs();
    let n_owned = mesh.nodes.n_owned();
    let (lower_start, ghost_start) = (&rows.lower.row_start, &rows.ghost.row_start);
    let lower = slabs.split(rows.lower.values.as_chunks_mut().0, |row| lower_start[row]);
    let ghost = slabs.split(rows.ghost.values.as_chunks_mut().0, |row| ghost_start[row]);
    let jobs: Vec<SlabRows> = (slabs
        .rows()
        .zip(lower.into_iter().zip(ghost))
        .zip(pattern.positions()))
    .map(|((rows, (lower, ghost)), positions)| SlabRows {
        n_owned,
        lower_start: &lower_start[rows.start..=rows.end],
        ghost_start: &ghost_start[rows.start..=rows.end],
        rows,
        lower,
        ghost,
        cursor: positions.start.clone(),
        positions,
    })
    .collect();
    let inverted: Vec<Vec<u64>> = (jobs.into_par_iter())
        .map(|mut slab| {
            let mut chunk = Chunk::default();
            let mut cells = cells_touching(&mesh.cells, slab.rows.clone());
            while chunk.take(&mut cells) {
                chunk.compute(&laws);
                chunk.for_each(|cell, stiffness| slab.add(mesh.cells.nodes_of(cell), stiffness));
            }
            chunk
                .inverted
                .iter()
                .map(|&cell| mesh.cell_ids[cell])
                .collect()
        })
        .collect();
    check_orientation(comm, inverted.concat())
}

/// Collective. An error that names the elements of `inverted` (numbers of the input, in any order, with repetitions)
/// if any rank has one.
fn check_orientation(comm: &Comm, inverted: Vec<u64>) -> Result<()> {
    let mut all = comm.all_gather(&inverted).concat();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        return Ok(());
    }
    let first: Vec<String> = all.iter().take(10).map(u64::to_string).collect();
    let (noun, verb) = if all.len() == 1 {
        ("element", "has")
    } else {
        ("elements", "have")
    };
    let more = if all.len() > 10 { ", ..." } else { "" };
    let what = format!(
        "{} {noun} {verb} a negative or zero Jacobian: {noun} {}{more}",
        all.len(),
        first.join(", ")
    );
    Err(Error::model(what)
        .expected("elements that are not inside out, flat or folded")
        .advice("check the order of their nodes, of curved elements the mid-side nodes, and whether the model is far from the origin; then mesh again near them"))
}

/// Laws and formulations of the cells of a model.
struct CellLaws<'a> {
    model: &'a Model,
    conditions: Conditions<'a>,
}

impl<'a> CellLaws<'a> {
    fn new(model: &'a Model) -> Self {
        CellLaws {
            model,
            conditions: Conditions::new(model),
        }
    }

    /// Cells of one kind are computed in batches; `None` for those that are computed alone.
    fn kind(&self, cell: usize) -> Option<(CellType, Purpose)> {
        let cell_type = self.model.mesh.cells.types[cell];
        let formulation = self.model.cell_formulation[cell];
        let in_batches = is_batched(cell_type, formulation) && self.conditions.lame(cell).is_some();
        in_batches.then(|| (cell_type, rule(formulation)))
    }

    fn lame(&self, cell: usize) -> [f64; 2] {
        self.conditions.lame(cell).unwrap_or_default()
    }
}

/// A few cells in ascending order with their stiffness matrices.
struct Chunk {
    kernel: StiffnessKernel,
    general: GeneralElement,
    cells: Vec<usize>,
    /// Where the stiffness of each cell begins in `stiffness`.
    start: Vec<usize>,
    stiffness: Vec<f64>,
    coords: Vec<[f64; 3]>,
    lame: Vec<[f64; 2]>,
    inverted: Vec<usize>,
}

impl Default for Chunk {
    fn default() -> Self {
        Chunk {
            kernel: StiffnessKernel::default(),
            general: GeneralElement::default(),
            cells: Vec::with_capacity(CHUNK),
            start: vec![0; CHUNK],
            stiffness: Vec::new(),
            coords: Vec::new(),
            lame: Vec::new(),
            inverted: Vec::new(),
        }
    }
}

impl Chunk {
    /// Takes the next cells; false if there are none left.
    fn take(&mut self, cells: &mut impl Iterator<Item = usize>) -> bool {
        self.cells.clear();
        self.cells.extend(cells.take(CHUNK));
        !self.cells.is_empty()
    }

    /// Computes the stiffness of the cells, those of one kind together.
    fn compute(&mut self, laws: &CellLaws) {
        let mut kinds = [None; CHUNK];
        for (kind, &cell) in kinds.iter_mut().zip(&self.cells) {
            *kind = laws.kind(cell);
        }
        let kinds = &kinds[..self.cells.len()];
        let mut end = 0;
        for (first, kind) in kinds.iter().enumerate() {
            match kind {
                None => end = self.compute_one(first, end, laws),
                Some(_) if kinds[..first].contains(kind) => {}
                Some(kind) => end = self.compute_batch(*kind, kinds, end, laws),
            }
        }
    }

    /// Room for stiffness matrices from `begin` to `end`.
    fn reserve(&mut self, end: usize) {
        if self.stiffness.len() < end {
            self.stiffness.resize(end, 0.0);
        }
    }

    /// The cells of one kind; their matrices stand from `begin` on. Returns where they end.
    fn compute_batch(
        &mut self,
        kind: (CellType, Purpose),
        kinds: &[Option<(CellType, Purpose)>],
        begin: usize,
        laws: &CellLaws,
    ) -> usize {
        let (cell_type, rule) = kind;
        let mesh = &laws.model.mesh;
        let mut end = begin;
        self.coords.clear();
        self.lame.clear();
        let is_member = |at: &usize| kinds[*at] == Some(kind);
        for at in (0..kinds.len()).filter(is_member) {
            self.start[at] = end;
            end += stiffness_len(cell_type);
            let nodes = mesh.cells.nodes_of(self.cells[at]).iter();
            self.coords
                .extend(nodes.map(|&node| mesh.coords[node as usize]));
            self.lame.push(laws.lame(self.cells[at]));
        }
        self.reserve(end);
        let mut min_det = [0.0; CHUNK];
        let elements = Elements {
            cell_type,
            rule,
            coords: &self.coords,
            lame: &self.lame,
        };
        self.kernel
            .compute(elements, &mut self.stiffness[begin..end], &mut min_det);
        for (at, det) in (0..kinds.len()).filter(is_member).zip(min_det) {
            self.note_det(at, det);
        }
        if rule == Purpose::Reduced {
            self.add_hourglasses(cell_type, begin..end);
        }
        end
    }

    /// Adds to the batch of reduced elements, whose matrices stand in `range`, what resists hourglasses.
    fn add_hourglasses(&mut self, cell_type: CellType, range: Range<usize>) {
        let matrices = self.stiffness[range].chunks_exact_mut(stiffness_len(cell_type));
        let coords = self.coords.chunks_exact(cell_type.n_nodes());
        for ((half, coords), [lambda, mu]) in matrices.zip(coords).zip(&self.lame) {
            let young = mu * (3.0 * lambda + 2.0 * mu) / (lambda + mu);
            Hourglass::new(cell_type, coords, young).add_to(half);
        }
    }

    /// The cell at place `at`; its matrix stands from `begin` on. Returns where it ends.
    fn compute_one(&mut self, at: usize, begin: usize, laws: &CellLaws) -> usize {
        let mesh = &laws.model.mesh;
        let cell = self.cells[at];
        let cell_type = mesh.cells.types[cell];
        let end = begin + stiffness_len(cell_type);
        self.start[at] = begin;
        self.reserve(end);
        let mut coords = [[0.0; 3]; MAX_NODES];
        mesh.gather_coords(cell, &mut coords);
        let formulation = laws.model.cell_formulation[cell];
        let table = Tabulation::of(cell_type, rule(formulation));
        let min_det = self.general.set(&Element {
            cell_type,
            formulation,
            coords: &coords[..cell_type.n_nodes()],
            d: &laws.conditions.of_cell(cell).stiffness_at(table),
        });
        if min_det > 0.0 {
            self.general.stiffness_into(&mut self.stiffness[begin..end]);
        }
        self.note_det(at, min_det);
        end
    }

    fn note_det(&mut self, at: usize, det: f64) {
        if det.is_nan() || det <= 0.0 {
            self.inverted.push(self.cells[at]);
        }
    }

    /// Calls `f(cell, half of its stiffness)` in ascending order of cells.
    fn for_each(&self, mut f: impl FnMut(usize, &[[f64; 9]])) {
        for (&cell, &start) in self.cells.iter().zip(&self.start) {
            f(cell, self.stiffness[start..].as_chunks().0);
        }
    }
}

/// The rows that one thread writes.
struct SlabRows<'a> {
    rows: Range<usize>,
    n_owned: usize,
    lower_start: &'a [usize],
    ghost_start: &'a [usize],
    lower: &'a mut [[f64; 9]],
    ghost: &'a mut [[f64; 9]],
    /// Next position to read for each row.
    cursor: Vec<usize>,
    positions: &'a SlabPositions,
}

impl SlabRows<'_> {
    /// Adds the blocks of a cell to the rows of the slab. `half` holds K_ab, a <= b, row by row.
    fn add(&mut self, nodes: &[u32], half: &[[f64; 9]]) {
        let n = nodes.len();
        // Place of K_aa in `half`.
        let mut diagonal = 0;
        for (a, &node) in nodes.iter().enumerate() {
            if self.rows.contains(&(node as usize)) {
                let row = node as usize - self.rows.start;
                let start = self.cursor[row];
                let is_first = start == self.positions.start[row];
                let mut positions = self.positions.values[start..].iter();
                let mut target = RowBlocks {
                    lower: &mut self.lower[places(self.lower_start, row)],
                    ghost: &mut self.ghost[places(self.ghost_start, row)],
                };
                if is_first {
                    target.clear();
                }
                let is_stored = |b: usize| is_stored(node as usize, nodes[b], self.n_owned);
                // K_ab = K_ba^T for b < a; K_ba stands a - b places after K_bb.
                let mut place = a;
                for b in 0..a {
                    if is_stored(b)
                        && let Some(&position) = positions.next()
                    {
                        target.add_transposed(position, &half[place]);
                    }
                    place += n - b - 1;
                }
                for b in a..n {
                    if is_stored(b)
                        && let Some(&position) = positions.next()
                    {
                        target.add(position, &half[diagonal + b - a]);
                    }
                }
                self.cursor[row] = self.positions.values.len() - positions.len();
            }
            diagonal += n - a;
        }
    }
}

/// Blocks of row `row` of a slab among those of the slab.
fn places(row_start: &[usize], row: usize) -> Range<usize> {
    row_start[row] - row_start[0]..row_start[row + 1] - row_start[0]
}

/// Blocks of one row.
struct RowBlocks<'a> {
    lower: &'a mut [[f64; 9]],
    ghost: &'a mut [[f64; 9]],
}

impl RowBlocks<'_> {
    /// Zeros, written when the row is first met: the page is first touched by a write and stays in cache.
    fn clear(&mut self) {
        self.lower.fill([0.0; 9]);
        self.ghost.fill([0.0; 9]);
    }

    #[inline]
    fn at(&mut self, position: u16) -> &mut [f64; 9] {
        let position = usize::from(position);
        let n_lower = self.lower.len();
        if position < n_lower {
            &mut self.lower[position]
        } else {
            &mut self.ghost[position - n_lower]
        }
    }

    #[inline]
    fn add(&mut self, position: u16, block: &[f64; 9]) {
        for (value, add) in self.at(position).iter_mut().zip(block) {
            *value += add;
        }
    }

    #[inline]
    fn add_transposed(&mut self, position: u16, [xx, xy, xz, yx, yy, yz, zx, zy, zz]: &[f64; 9]) {
        let transposed = [*xx, *yx, *zx, *xy, *yy, *zy, *xz, *yz, *zz];
        self.add(position, &transposed);
    }
}

#[cfg(test)]
mod tests {
    use super::assemble_stiffness;
    use crate::assembly::Pattern;
    use crate::assembly::test_models::{dense, mixed_mesh, model, split};
    use fem_mesh::CellType;
    use fem_mesh::Comm;
    use fem_mesh::comm::run_threads;

    #[test]
    fn the_matrix_is_symmetric_and_free_of_forces_in_rigid_motion() {
        let comm = Comm::alone();
        let model = model(split(&comm, &mixed_mesh()));
        let (pattern, mut rows) = Pattern::new(&model.mesh).unwrap();
        assemble_stiffness(&comm, &model, &pattern, &mut rows).unwrap();
        let k = dense(&model.mesh, &rows);
        assert!((&k - k.transpose()).norm() < 1e-14 * k.norm());
        let coords = &model.mesh.coords;
        for i in 0..3 {
            let turned = coords.iter().flat_map(|x| {
                let mut u = [0.0; 3];
                u[i] = -x[(i + 1) % 3];
                u[(i + 1) % 3] = x[i];
                u
            });
            let u = nalgebra::DVector::from_iterator(3 * coords.len(), turned);
            assert!((&k * &u).norm() < 1e-13 * k.norm() * u.norm());
            let moved =
                nalgebra::DVector::from_fn(
                    3 * coords.len(),
                    |row, _| if row % 3 == i { 1.0 } else { 0.0 },
                );
            assert!((&k * &moved).norm() < 1e-13 * k.norm() * moved.norm());
        }
    }

    #[test]
    fn any_number_of_slabs_gives_the_same_bits() {
        let comm = Comm::alone();
        let model = model(split(&comm, &mixed_mesh()));
        let with_slabs = |n| {
            let (pattern, mut rows) = Pattern::with_slabs(&model.mesh, n).unwrap();
            assemble_stiffness(&comm, &model, &pattern, &mut rows).unwrap();
            rows
        };
        let expected = with_slabs(1);
        assert!(expected.lower.values.iter().all(|v| v.is_finite()));
        for n_slabs in [2, 3, 5] {
            assert_eq!(with_slabs(n_slabs), expected);
        }
    }

    #[test]
    fn ranks_together_hold_the_matrix_of_one_rank() {
        let mesh = mixed_mesh();
        let alone = Comm::alone();
        let whole = model(split(&alone, &mesh));
        let (pattern, mut rows) = Pattern::new(&whole.mesh).unwrap();
        assemble_stiffness(&alone, &whole, &pattern, &mut rows).unwrap();
        let expected = dense(&whole.mesh, &rows);
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let part = model(split(comm, &mesh));
                let (pattern, mut rows) = Pattern::new(&part.mesh).unwrap();
                assemble_stiffness(comm, &part, &pattern, &mut rows).unwrap();
                let k = dense(&part.mesh, &rows);
                let first = 3 * part.mesh.nodes.offset() as usize;
                let own = 3 * part.mesh.nodes.n_owned();
                let error = (k.rows(first, own) - expected.rows(first, own)).norm();
                assert!(error < 1e-14 * expected.norm());
            });
        }
    }

    #[test]
    fn inverted_elements_are_named_once_on_every_rank() {
        let mut mesh = mixed_mesh();
        let mut bad = Vec::new();
        for cell in (0..mesh.n_cells())
            .filter(|&c| mesh.cells.types[c] == CellType::Hex8)
            .take(2)
        {
            let start = mesh.cells.offsets[cell] as usize;
            mesh.cells.nodes.swap(start, start + 6);
            bad.push(mesh.cell_ids[cell]);
        }
        let list = format!("elements {}, {}", bad[0], bad[1]);
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let model = model(split(comm, &mesh));
                let (pattern, mut rows) = Pattern::new(&model.mesh).unwrap();
                let error = assemble_stiffness(comm, &model, &pattern, &mut rows).unwrap_err();
                assert_eq!(error.exit_code(), 3);
                assert!(error.to_string().contains(&list), "{error}");
            });
        }
    }
}
