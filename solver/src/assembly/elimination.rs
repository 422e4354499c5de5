//! Dependent degrees of freedom, taken out of the linear system: A' = T^T A T, f' = T^T (f - A g) where u = T v + g.
//!
//! T acts by nodes: a node with a dependent degree of freedom follows some other nodes by 3 x 3 blocks, and itself where a
//! component stays free. Every block A_ij of two such nodes goes to the blocks of the nodes that they follow, on the
//! ranks that own these; new blocks and new ghost columns come into being. Dependent degrees of freedom keep a diagonal
//! entry and a zero row and column, as prescribed ones do. The matrix stays symmetric and positive definite, and its
//! near-nullspace is that of the independent nodes.
//!
//! Blocks of nodes without dependent degrees of freedom stay as they are. Memory: both matrices are held for a moment.
//!
//! Invariant: knows blocks and nodes by number; what a constraint stands for is unknown here.

use super::merge::{Added, merge_part};
use super::pattern::BlockRows;
use crate::links::Links;
use fem_mesh::{Comm, Halo, IndexMap};

pub(super) type Block = [f64; 9];

const IDENTITY: Block = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
const ZERO: Block = [0.0; 9];

/// What a node follows: u = sum of matrix * v + offset.
struct Expansion {
    is_dependent: [bool; 3],
    offset: [f64; 3],
    /// Global node and 3 x 3 matrix, ascending.
    parts: Vec<(u64, Block)>,
}

/// The map from independent degrees of freedom to all, on one rank.
pub struct Elimination {
    /// Distribution of the reduced system: the nodes of the mesh, with more ghosts.
    map: IndexMap,
    halo: Halo,
    /// Local number of each owned node that follows others, with the local numbers in `map` of what it follows.
    owned: Vec<(u32, Expansion, Vec<u32>)>,
}

/// A block of the reduced matrix on its way to the owner of its row: global row, global column, bits of the values.
type Parcel = [u64; 11];

impl Elimination {
    /// Collective. Takes the dependent degrees of freedom of `links` out of `rows` and `rhs` (3 an owned node); `nodes` is
    /// the distribution of both. Returns the rows of the reduced matrix, distributed by [`Elimination::map`].
    pub fn apply(
        comm: &Comm,
        nodes: &IndexMap,
        links: &Links,
        rows: BlockRows,
        rhs: &mut [f64],
    ) -> (Self, BlockRows) {
        let starts = starts(comm, nodes);
        let mut expansions: Vec<Option<Expansion>> = Vec::new();
        expansions.resize_with(nodes.n_local(), || None);
        for &dof in links.rows.keys() {
            if let Some(local) = nodes.local(dof / 3)
                && expansions[local].is_none()
            {
                expansions[local] = Some(expansion(links, dof / 3));
            }
        }
        move_offsets(&rows, &expansions, rhs);
        let parcels = expand(nodes, &starts, &rows, &expansions);
        let received = comm.all_to_all(parcels).concat();
        let map = reduced_map(comm, nodes, &received, &expansions);
        let halo = Halo::new(comm, &map);
        let reduced = merge(nodes, &map, rows, &expansions, &received);
        let local = |node: &u64| map.local(*node).unwrap_or(0) as u32;
        let owned = expansions
            .into_iter()
            .take(nodes.n_owned())
            .zip(0..)
            .filter_map(|(expansion, node)| {
                let expansion = expansion?;
                let targets = expansion
                    .parts
                    .iter()
                    .map(|(node, _)| local(node))
                    .collect();
                Some((node, expansion, targets))
            })
            .collect();
        let elimination = Elimination { map, halo, owned };
        elimination.gather(comm, rhs);
        (elimination, reduced)
    }

    /// Distribution of the rows and columns of the reduced matrix. Its owned nodes are those of the mesh.
    pub fn map(&self) -> &IndexMap {
        &self.map
    }

    /// Dependent degrees of freedom of the owned nodes, ascending, local numbers 3 * node + component.
    pub fn dependent(&self) -> Vec<u32> {
        let of_node = |(node, expansion, _): &(u32, Expansion, Vec<u32>)| {
            let (node, is_dependent) = (*node, expansion.is_dependent);
            (0..3)
                .filter(move |&c| is_dependent[c])
                .map(move |c| 3 * node + c as u32)
        };
        self.owned.iter().flat_map(of_node).collect()
    }

    /// Collective. Sets the dependent entries of `u` (3 an owned node) by the independent ones.
    pub fn expand(&self, comm: &Comm, u: &mut [f64]) {
        let mut ghosts = vec![0.0; 3 * self.map.n_ghosts()];
        self.halo.forward(comm, u, &mut ghosts, 3);
        let n_owned = self.map.n_owned();
        let mut changed = Vec::with_capacity(self.owned.len());
        for (_, expansion, targets) in &self.owned {
            let mut value = expansion.offset;
            for (&target, (_, matrix)) in targets.iter().zip(&expansion.parts) {
                let target = target as usize;
                let v = match target.checked_sub(n_owned) {
                    None => &u[3 * target..3 * target + 3],
                    Some(ghost) => &ghosts[3 * ghost..3 * ghost + 3],
                };
                for i in 0..3 {
                    value[i] += (0..3).map(|j| matrix[3 * i + j] * v[j]).sum::<f64>();
                }
            }
            changed.push(value);
        }
        for ((node, ..), value) in self.owned.iter().zip(changed) {
            let first = 3 * *node as usize;
            u[first..first + 3].copy_from_slice(&value);
        }
    }

    /// Collective. Moves the dependent entries of a force (3 an owned node) to the degrees of freedom that they follow:
    /// T^T f.
    pub fn gather(&self, comm: &Comm, force: &mut [f64]) {
        let n_owned = self.map.n_owned();
        let mut moved = vec![0.0; 3 * self.map.n_local()];
        for (node, expansion, targets) in &self.owned {
            let first = 3 * *node as usize;
            let f: [f64; 3] = [0, 1, 2].map(|i| force[first + i]);
            for (&target, (_, matrix)) in targets.iter().zip(&expansion.parts) {
                for j in 0..3 {
                    moved[3 * target as usize + j] +=
                        (0..3).map(|i| matrix[3 * i + j] * f[i]).sum::<f64>();
                }
            }
            force[first..first + 3].fill(0.0);
        }
        let (owned, ghosts) = moved.split_at_mut(3 * n_owned);
        self.halo.reverse_add(comm, ghosts, owned, 3);
        for (sum, value) in force.iter_mut().zip(owned) {
            *sum += *value;
        }
    }

    /// Collective. Prescribed degrees of freedom `fixed` of the owned nodes, and those of the ghosts of the reduced system.
    pub fn fixed(&self, comm: &Comm, fixed: &[(u32, f64)]) -> Vec<(u32, f64)> {
        fixed_as_owners_say(comm, &self.map, &self.halo, fixed)
    }
}

/// Collective. The prescribed degrees of freedom of the owned nodes among `fixed`, and those of the ghosts as their
/// owners have them.
pub fn fixed_as_owners_say(
    comm: &Comm,
    map: &IndexMap,
    halo: &Halo,
    fixed: &[(u32, f64)],
) -> Vec<(u32, f64)> {
    let n_owned = 3 * map.n_owned();
    // A prescribed value is a number; a free degree of freedom is none.
    let mut values = vec![f64::NAN; 3 * map.n_local()];
    for &(dof, value) in fixed.iter().filter(|(dof, _)| (*dof as usize) < n_owned) {
        values[dof as usize] = value;
    }
    let (owned, ghosts) = values.split_at_mut(n_owned);
    halo.forward(comm, owned, ghosts, 3);
    let numbered = values.into_iter().enumerate();
    let prescribed = numbered.filter(|(_, value)| !value.is_nan());
    prescribed.map(|(dof, value)| (dof as u32, value)).collect()
}

/// Collective. First global index of each rank.
fn starts(comm: &Comm, nodes: &IndexMap) -> Vec<u64> {
    comm.all_gather(&[nodes.offset()]).concat()
}

/// The last rank that starts at or before a node: with empty ranks several start at one index.
fn owner(starts: &[u64], node: u64) -> usize {
    starts.partition_point(|&start| start <= node) - 1
}

/// What a node follows by its rows.
fn expansion(links: &Links, node: u64) -> Expansion {
    let mut expansion = Expansion {
        is_dependent: [false; 3],
        offset: [0.0; 3],
        parts: Vec::new(),
    };
    let mut entries: Vec<(u64, usize, f64)> = Vec::new();
    for i in 0..3 {
        match links.rows.get(&(3 * node + i as u64)) {
            None => entries.push((3 * node + i as u64, i, 1.0)),
            Some(row) => {
                expansion.is_dependent[i] = true;
                expansion.offset[i] = row.constant;
                entries.extend(row.terms.iter().map(|&(dof, c)| (dof, i, c)));
            }
        }
    }
    entries.sort_unstable_by_key(|&(dof, i, _)| (dof, i));
    for (dof, i, coefficient) in entries {
        if expansion
            .parts
            .last()
            .is_none_or(|(last, _)| *last != dof / 3)
        {
            expansion.parts.push((dof / 3, ZERO));
        }
        if let Some((_, matrix)) = expansion.parts.last_mut() {
            matrix[3 * i + (dof % 3) as usize] += coefficient;
        }
    }
    expansion
}

/// Calls `f(row, local column, block)` for every stored block of the owned rows.
fn for_each_block(rows: &BlockRows, mut f: impl FnMut(usize, usize, &Block)) {
    let n_owned = rows.lower.n_rows;
    for row in 0..n_owned {
        for (part, first) in [(&rows.lower, 0), (&rows.ghost, n_owned)] {
            let blocks = part.values.as_chunks().0;
            for k in part.row(row) {
                f(row, first + part.columns[k] as usize, &blocks[k]);
            }
        }
    }
}

/// Takes over into `rhs` what constants cause: f - A g.
fn move_offsets(rows: &BlockRows, expansions: &[Option<Expansion>], rhs: &mut [f64]) {
    let n_owned = rows.lower.n_rows;
    let offset = |node: usize| {
        let offset = expansions[node].as_ref().map(|e| e.offset);
        offset.filter(|g| *g != [0.0; 3])
    };
    if (0..expansions.len()).all(|node| offset(node).is_none()) {
        return;
    }
    for_each_block(rows, |row, column, block| {
        if let Some(g) = offset(column) {
            for i in 0..3 {
                rhs[3 * row + i] -= (0..3).map(|j| block[3 * i + j] * g[j]).sum::<f64>();
            }
        }
        if column < n_owned
            && column != row
            && let Some(g) = offset(row)
        {
            for j in 0..3 {
                rhs[3 * column + j] -= (0..3).map(|i| block[3 * i + j] * g[i]).sum::<f64>();
            }
        }
    });
}

/// The blocks that the blocks of nodes that follow others turn into, by the rank that stores them. The block of two
/// nodes of different ranks is stored on both; the owner of the later node expands it.
fn expand(
    nodes: &IndexMap,
    starts: &[u64],
    rows: &BlockRows,
    expansions: &[Option<Expansion>],
) -> Vec<Vec<Parcel>> {
    let mut parcels = vec![Vec::new(); starts.len()];
    let n_owned = rows.lower.n_rows;
    for_each_block(rows, |row, column, block| {
        if expansions[row].is_none() && expansions[column].is_none() {
            return;
        }
        let (i, j) = (nodes.global(row), nodes.global(column));
        if column >= n_owned && i < j {
            return;
        }
        let itself = [(i, IDENTITY), (j, IDENTITY)];
        let of_row = expansions[row].as_ref().map_or(&itself[..1], |e| &e.parts);
        let of_column = expansions[column]
            .as_ref()
            .map_or(&itself[1..], |e| &e.parts);
        for (m, left) in of_row {
            let half = multiply(&transposed(left), block);
            for (n, right) in of_column {
                let product = multiply(&half, right);
                if product == ZERO {
                    continue;
                }
                let [of_m, of_n] = [m, n].map(|node| owner(starts, *node));
                if of_m != of_n || m >= n {
                    parcels[of_m].push(parcel(*m, *n, &product));
                }
                // The block above the diagonal, transposed; a diagonal block stands for itself.
                if row != column && (of_m != of_n || n >= m) {
                    parcels[of_n].push(parcel(*n, *m, &transposed(&product)));
                }
            }
        }
    });
    // Dependent degrees of freedom keep their diagonal.
    for (row, expansion) in expansions[..n_owned].iter().enumerate() {
        if let Some(expansion) = expansion {
            let last = rows.lower.row_start[row + 1] - 1;
            let own = rows.lower.block(last);
            let mut block = ZERO;
            for c in (0..3).filter(|&c| expansion.is_dependent[c]) {
                block[4 * c] = if own[4 * c] == 0.0 { 1.0 } else { own[4 * c] };
            }
            let node = nodes.global(row);
            parcels[owner(starts, node)].push(parcel(node, node, &block));
        }
    }
    parcels
}

fn parcel(row: u64, column: u64, block: &Block) -> Parcel {
    let mut parcel = [row; 11];
    parcel[1] = column;
    for (bits, value) in parcel[2..].iter_mut().zip(block) {
        *bits = value.to_bits();
    }
    parcel
}

/// Collective. The nodes with more ghosts: new columns, and what local nodes follow.
fn reduced_map(
    comm: &Comm,
    nodes: &IndexMap,
    received: &[Parcel],
    expansions: &[Option<Expansion>],
) -> IndexMap {
    let mine = nodes.offset()..nodes.offset() + nodes.n_owned() as u64;
    let followed = expansions.iter().flatten().flat_map(|e| &e.parts);
    let mut ghosts: Vec<u64> = nodes.ghosts().to_vec();
    ghosts.extend(
        followed
            .map(|(node, _)| node)
            .filter(|node| !mine.contains(node)),
    );
    ghosts.extend(
        received
            .iter()
            .map(|parcel| parcel[1])
            .filter(|node| !mine.contains(node)),
    );
    ghosts.sort_unstable();
    ghosts.dedup();
    IndexMap::new(comm, nodes.n_owned(), ghosts)
}

/// The reduced rows: the blocks of nodes that follow nothing, and what was received.
fn merge(
    nodes: &IndexMap,
    map: &IndexMap,
    rows: BlockRows,
    expansions: &[Option<Expansion>],
    received: &[Parcel],
) -> BlockRows {
    let n_owned = nodes.n_owned();
    let [mut lower, mut ghost]: [Vec<Added>; 2] = Default::default();
    for parcel in received {
        let row = (parcel[0] - nodes.offset()) as u32;
        let mut block = ZERO;
        for (value, bits) in block.iter_mut().zip(&parcel[2..]) {
            *value = f64::from_bits(*bits);
        }
        match map.local(parcel[1]) {
            Some(column) if column >= n_owned => {
                ghost.push((row, (column - n_owned) as u32, block));
            }
            Some(column) => lower.push((row, column as u32, block)),
            None => debug_assert!(false, "a column that the map does not hold"),
        }
    }
    let ghost_column: Vec<u32> = (nodes.ghosts().iter())
        .map(|&global| (map.local(global).unwrap_or(n_owned) - n_owned) as u32)
        .collect();
    let stays =
        |row: usize, column: usize| expansions[row].is_none() && expansions[column].is_none();
    let lower = merge_part(
        &rows.lower,
        n_owned,
        |row, c| stays(row, c).then_some(c as u32),
        lower,
    );
    let ghost = merge_part(
        &rows.ghost,
        map.n_ghosts(),
        |row, c| stays(row, n_owned + c).then(|| ghost_column[c]),
        ghost,
    );
    BlockRows { lower, ghost }
}

fn transposed(a: &Block) -> Block {
    std::array::from_fn(|at| a[3 * (at % 3) + at / 3])
}

fn multiply(a: &Block, b: &Block) -> Block {
    std::array::from_fn(|at| {
        let (i, j) = (at / 3, at % 3);
        a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j]
    })
}

#[cfg(test)]
mod tests {
    use super::Elimination;
    use crate::assembly::test_models::{dense, mixed_mesh, model, split};
    use crate::assembly::{Pattern, assemble_stiffness};
    use crate::element::test_cells::noise;
    use crate::links::{Equation, Links, reduce};
    use fem_mesh::Comm;
    use fem_mesh::comm::run_threads;
    use nalgebra::{DMatrix, DVector};
    use std::collections::BTreeMap;

    /// Equations between nodes all over the mesh: single components, whole nodes, chains, and with constants.
    fn links(n_dofs: u64) -> Links {
        let mut equations = Vec::new();
        for e in 0..25u64 {
            let mut terms: BTreeMap<u64, f64> = BTreeMap::new();
            for t in 0..(2 + e % 4) {
                let dof = (37 * e + 101 * t + e * e * t) % n_dofs;
                *terms.entry(dof).or_default() += 1.5 + noise(40 * e + t);
            }
            equations.push(Equation {
                terms: terms.into_iter().collect(),
                constant: if e % 3 == 0 { 0.0 } else { noise(e + 900) },
                origin: 0,
            });
        }
        // One node follows three others as a whole, turned.
        for c in 0..3u64 {
            let masters = [4u64, 20, 33].map(|node| (3 * node + (c + 1) % 3, -1.0 / 3.0));
            let mut terms = vec![(3 * 11 + c, 1.0)];
            terms.extend(masters);
            equations.push(Equation {
                terms,
                constant: 0.0,
                origin: 0,
            });
        }
        let reduced = reduce(&equations, &BTreeMap::new());
        assert!(reduced.contradiction.is_none());
        Links {
            rows: reduced.rows,
            equations,
            rotations: Vec::new(),
        }
    }

    fn force(dof: u64) -> f64 {
        1.0 + noise(dof + 5000)
    }

    /// The reduced system by dense matrices: T^T A T with the old diagonal where a degree of freedom is dependent.
    struct Expected {
        t: DMatrix<f64>,
        g: DVector<f64>,
        k: DMatrix<f64>,
        f: DVector<f64>,
    }

    fn expected() -> Expected {
        let comm = Comm::alone();
        let model = model(split(&comm, &mixed_mesh()));
        let (pattern, mut rows) = Pattern::new(&model.mesh).unwrap();
        assemble_stiffness(&comm, &model, &pattern, &mut rows).unwrap();
        let k = dense(&model.mesh, &rows);
        let n = k.nrows();
        let links = links(n as u64);
        let mut t = DMatrix::identity(n, n);
        let mut g = DVector::zeros(n);
        for (&dof, row) in &links.rows {
            let dof = dof as usize;
            t.row_mut(dof).fill(0.0);
            for &(other, c) in &row.terms {
                t[(dof, other as usize)] = c;
            }
            g[dof] = row.constant;
        }
        let f = DVector::from_fn(n, |dof, _| force(dof as u64));
        let mut reduced = t.transpose() * &k * &t;
        for &dof in links.rows.keys() {
            reduced[(dof as usize, dof as usize)] = k[(dof as usize, dof as usize)];
        }
        let f = t.transpose() * (f - &k * &g);
        Expected {
            t,
            g,
            k: reduced,
            f,
        }
    }

    #[test]
    fn elimination_on_ranks_agrees_with_the_dense_one() {
        let Expected { t, g, k, f } = expected();
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let model = model(split(comm, &mixed_mesh()));
                let (pattern, mut rows) = Pattern::new(&model.mesh).unwrap();
                assemble_stiffness(comm, &model, &pattern, &mut rows).unwrap();
                let nodes = &model.mesh.nodes;
                let (first, n) = (3 * nodes.offset() as usize, 3 * nodes.n_owned());
                let mut rhs: Vec<f64> = (first..first + n).map(|dof| force(dof as u64)).collect();
                let links = links(3 * nodes.n_global());
                let (elimination, reduced) =
                    Elimination::apply(comm, nodes, &links, rows, &mut rhs);
                assert!(reduced.lower.is_lower_half() && reduced.lower.is_well_formed());
                assert!(reduced.ghost.is_well_formed());
                let mut as_mesh = model.mesh.clone();
                as_mesh.nodes = elimination.map().clone();
                let error = (dense(&as_mesh, &reduced).rows(first, n) - k.rows(first, n)).norm();
                assert!(error < 1e-13 * k.norm(), "{error} on {n_ranks}");
                let rhs = DVector::from_vec(rhs);
                assert!((&rhs - f.rows(first, n)).norm() < 1e-12 * f.norm());
                // Displacements follow.
                let v = DVector::from_fn(t.nrows(), |dof, _| noise(dof as u64));
                let mut u: Vec<f64> = (first..first + n).map(|dof| v[dof]).collect();
                elimination.expand(comm, &mut u);
                let all = &t * &v + &g;
                assert!((DVector::from_vec(u) - all.rows(first, n)).norm() < 1e-13 * all.norm());
                let dependent: Vec<u64> = elimination
                    .dependent()
                    .iter()
                    .map(|&d| first as u64 + u64::from(d))
                    .collect();
                let mine = links
                    .rows
                    .keys()
                    .copied()
                    .filter(|&d| (first..first + n).contains(&(d as usize)));
                assert_eq!(dependent, mine.collect::<Vec<_>>());
            });
        }
    }
}
