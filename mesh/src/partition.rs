//! Which cell goes to which part.
//!
//! In: a mesh held on one rank, a number of parts, their weights and the work of each cell. Out: the part of each
//! cell, with edge cut, halo and imbalance. Two methods: METIS on the dual graph, and recursive coordinate bisection
//! of the cell centroids, which has no limits and is best on boxes. Both are deterministic.
//!
//! Invariant: never communicates; the caller runs it on the rank that holds the mesh.

mod metis;
mod rcb;

use crate::adjacency::{Graph, dual_graph, node_cells};
use crate::{CellType, Error, Mesh, Result};

/// How to divide a mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartitionMethod {
    /// Both, and the better by the number of halo nodes.
    #[default]
    Auto,
    /// METIS: recursive bisection up to 64 parts, k-way above.
    Metis,
    /// Recursive coordinate bisection.
    Rcb,
}

/// What [`partition`] is to do beside the number of parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartitionOptions<'a> {
    /// The method.
    pub method: PartitionMethod,
    /// Share of the work of each part, to any scale; equal if `None`.
    pub part_weights: Option<&'a [f64]>,
    /// Work of each cell, to any scale, at least 1; equal if `None`. See [`cell_work`].
    pub cell_weights: Option<&'a [u32]>,
}

/// A division of a mesh into parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Part of each cell.
    pub parts: Vec<u32>,
    /// What made it: "one part", "metis" or "rcb".
    pub method: &'static str,
    /// Pairs of cells that share a face but not the part.
    pub edge_cut: u64,
    /// Over all nodes, the number of parts that touch a node beyond the first.
    pub halo: u64,
    /// Largest work of a part, relative to its share of the whole; 1 is perfect.
    pub imbalance: f64,
}

/// Work of a cell relative to others: the square of its number of nodes, the size of its matrix.
pub fn cell_work(cell_type: CellType) -> u32 {
    (cell_type.n_nodes() * cell_type.n_nodes()) as u32
}

/// Divides the cells of `mesh` into `n_parts` parts. With more parts than cells some parts are empty; a part of
/// weight 0 is always empty.
///
/// # Errors
/// No parts; weights in the wrong number, negative or all zero; METIS failing where it was asked for by name.
pub fn partition(mesh: &Mesh, n_parts: usize, options: &PartitionOptions<'_>) -> Result<Partition> {
    if n_parts == 0 {
        return Err(Error::input("a mesh cannot be divided into 0 parts").expected("at least 1"));
    }
    let shares = options
        .part_weights
        .map_or_else(|| vec![1.0; n_parts], <[f64]>::to_vec);
    check_weights(&shares, n_parts)?;
    let work = checked_work(mesh.n_cells(), options.cell_weights)?;
    let problem = Problem { mesh, shares, work };

    let filled = problem.filled_parts();
    if filled.len() == 1 {
        let parts = vec![filled[0]; mesh.n_cells()];
        return Ok(Partition {
            parts,
            method: "one part",
            edge_cut: 0,
            halo: 0,
            imbalance: 1.0,
        });
    }
    let graph = dual_graph(&mesh.cells);
    // METIS has a poor answer to parts of a few cells and none to a graph without edges.
    let suits_metis = mesh.n_cells() >= 4 * filled.len() && !graph.targets.is_empty();
    let by_coordinates = || problem.judge("rcb", rcb::bisect(&problem), &graph);
    let by_metis = || Ok(problem.judge("metis", metis::partition(&problem, &graph)?, &graph));
    match options.method {
        PartitionMethod::Metis if suits_metis => by_metis(),
        PartitionMethod::Auto if suits_metis => {
            let rcb = by_coordinates();
            Ok(match by_metis() {
                Ok(metis) if metis.is_better_than(&rcb) => metis,
                _ => rcb,
            })
        }
        _ => Ok(by_coordinates()),
    }
}

/// Shared by every way to divide a mesh: one weight per part, none negative, not all zero.
///
/// # Errors
/// Weights of another kind.
pub(crate) fn check_weights(weights: &[f64], n_parts: usize) -> Result<()> {
    let are_valid = weights.len() == n_parts
        && weights.iter().all(|w| w.is_finite() && *w >= 0.0)
        && weights.iter().sum::<f64>() > 0.0;
    if are_valid {
        return Ok(());
    }
    Err(Error::input(format!(
        "{n_parts} parts cannot have the weights {weights:?}"
    ))
    .expected("one weight for each part, none negative, at least one greater than 0"))
}

fn checked_work(n_cells: usize, weights: Option<&[u32]>) -> Result<Vec<u32>> {
    let Some(weights) = weights else {
        return Ok(vec![1; n_cells]);
    };
    if weights.len() != n_cells || weights.contains(&0) {
        return Err(Error::input("weights of elements do not fit the mesh")
            .expected(format!("{n_cells} weights, each at least 1")));
    }
    Ok(weights.to_vec())
}

/// A checked question.
struct Problem<'a> {
    mesh: &'a Mesh,
    /// Weight of each part.
    shares: Vec<f64>,
    /// Work of each cell.
    work: Vec<u32>,
}

impl Problem<'_> {
    /// Parts that have a weight.
    fn filled_parts(&self) -> Vec<u32> {
        let n_parts = self.shares.len() as u32;
        (0..n_parts)
            .filter(|&p| self.shares[p as usize] > 0.0)
            .collect()
    }

    fn judge(&self, method: &'static str, parts: Vec<u32>, graph: &Graph) -> Partition {
        let edge_cut = edge_cut(graph, &parts);
        let halo = count_halo(self.mesh, &parts);
        let imbalance = imbalance(&parts, &self.work, &self.shares);
        Partition {
            parts,
            method,
            edge_cut,
            halo,
            imbalance,
        }
    }
}

impl Partition {
    /// Fewer halo nodes, unless they are paid for by more than 5 % of balance.
    fn is_better_than(&self, other: &Partition) -> bool {
        let is_unbalanced = self.imbalance > 1.05 * other.imbalance;
        let makes_up = other.imbalance > 1.05 * self.imbalance;
        !is_unbalanced && (makes_up || self.halo < other.halo)
    }
}

/// Pairs of neighbors in different parts.
fn edge_cut(graph: &Graph, parts: &[u32]) -> u64 {
    let cut_of = |cell: usize| {
        graph
            .row(cell)
            .iter()
            .filter(|&&other| parts[other as usize] != parts[cell])
            .count()
    };
    (0..parts.len())
        .map(|cell| cut_of(cell) as u64)
        .sum::<u64>()
        / 2
}

/// Over all nodes, the number of parts that touch a node beyond the first.
fn count_halo(mesh: &Mesh, parts: &[u32]) -> u64 {
    let graph = node_cells(&mesh.cells, mesh.n_nodes());
    let mut touching = Vec::new();
    let mut halo = 0;
    for node in 0..graph.n_rows() {
        touching.clear();
        touching.extend(graph.row(node).iter().map(|&cell| parts[cell as usize]));
        touching.sort_unstable();
        touching.dedup();
        halo += touching.len().saturating_sub(1) as u64;
    }
    halo
}

/// Largest work of a part relative to its share; 1 if there is no work.
fn imbalance(parts: &[u32], work: &[u32], shares: &[f64]) -> f64 {
    let mut loads = vec![0u64; shares.len()];
    for (&part, &work) in parts.iter().zip(work) {
        loads[part as usize] += u64::from(work);
    }
    let loads: Vec<f64> = loads.iter().map(|&load| load as f64).collect();
    relative_imbalance(&loads, shares)
}

/// Largest load relative to its share of all loads; 1 if there is no load.
pub(crate) fn relative_imbalance(loads: &[f64], shares: &[f64]) -> f64 {
    let all_loads: f64 = loads.iter().sum();
    let all_shares: f64 = shares.iter().sum();
    if all_loads == 0.0 {
        return 1.0;
    }
    loads
        .iter()
        .zip(shares)
        .filter(|(load, _)| **load > 0.0)
        .map(|(load, share)| load / all_loads / (share / all_shares))
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::{Partition, PartitionMethod, PartitionOptions, cell_work, partition};
    use crate::generate::generate_slice;
    use crate::test_meshes::{mixed_box, two_bodies, unit_bricks};
    use crate::{CellType, Comm, Mesh};
    use PartitionMethod::{Auto, Metis, Rcb};
    use proptest::prelude::{Strategy, prop, proptest};

    fn divide(mesh: &Mesh, n_parts: usize, method: PartitionMethod) -> Partition {
        let options = PartitionOptions {
            method,
            ..Default::default()
        };
        partition(mesh, n_parts, &options).unwrap()
    }

    fn cube(n: usize) -> Mesh {
        generate_slice(&unit_bricks(CellType::Hex8, [n; 3]), &Comm::alone(), None).unwrap()
    }

    fn sizes(partition: &Partition, n_parts: usize) -> Vec<usize> {
        let mut sizes = vec![0; n_parts];
        for &part in &partition.parts {
            sizes[part as usize] += 1;
        }
        sizes
    }

    #[test]
    fn a_cube_in_eight_is_eight_cubes() {
        let halves = divide(&cube(8), 8, Auto);
        assert_eq!(halves.method, "rcb");
        assert_eq!(sizes(&halves, 8), [64; 8]);
        assert_eq!(halves.edge_cut, 3 * 64);
        // Nodes inside each of three cut planes, on their lines of crossing, and the center.
        assert_eq!(halves.halo, 3 * 64 + 3 * 8 * 3 + 7);
        assert_eq!(halves.imbalance, 1.0);
    }

    #[test]
    fn both_methods_balance_and_repeat_themselves() {
        for mesh in [cube(9), mixed_box([6, 5, 4]), two_bodies()] {
            for method in [Metis, Rcb, Auto] {
                for n_parts in [2, 3, 7] {
                    let first = divide(&mesh, n_parts, method);
                    assert_eq!(first.parts.len(), mesh.n_cells());
                    let mean = mesh.n_cells() as f64 / n_parts as f64;
                    assert!(
                        first.imbalance < 1.03 + 2.0 / mean,
                        "{method:?}: {}",
                        first.imbalance
                    );
                    assert!(sizes(&first, n_parts).iter().all(|&n| n > 0));
                    assert_eq!(divide(&mesh, n_parts, method), first);
                }
            }
        }
    }

    #[test]
    fn auto_is_no_worse_than_either() {
        let mesh = mixed_box([9, 4, 3]);
        let halos = [Metis, Rcb].map(|m| divide(&mesh, 4, m).halo);
        assert_eq!(divide(&mesh, 4, Auto).halo, halos[0].min(halos[1]));
    }

    #[test]
    fn weights_are_met() {
        let mesh = cube(10);
        let shares = [0.15, 0.25, 0.0, 0.6];
        for method in [Metis, Rcb] {
            let options = PartitionOptions {
                method,
                part_weights: Some(&shares),
                cell_weights: None,
            };
            let partition = partition(&mesh, 4, &options).unwrap();
            assert!(
                partition.imbalance < 1.02,
                "{method:?}: {}",
                partition.imbalance
            );
            assert_eq!(sizes(&partition, 4)[2], 0);
        }
    }

    #[test]
    fn cells_count_by_their_work() {
        let mesh = mixed_box([8, 8, 2]);
        let work: Vec<u32> = mesh.cells.types.iter().map(|&t| cell_work(t)).collect();
        for method in [Metis, Rcb] {
            let options = PartitionOptions {
                method,
                part_weights: None,
                cell_weights: Some(&work),
            };
            let partition = partition(&mesh, 4, &options).unwrap();
            assert!(
                partition.imbalance < 1.05,
                "{method:?}: {}",
                partition.imbalance
            );
        }
    }

    #[test]
    fn extremes_work() {
        for method in [Metis, Rcb, Auto] {
            let tiny = divide(&mixed_box([2, 1, 1]), 8, method);
            assert_eq!(sizes(&tiny, 8).into_iter().max(), Some(1));
            let one = divide(&mixed_box([2, 1, 1]), 1, method);
            assert_eq!((one.parts, one.edge_cut, one.halo), (vec![0; 3], 0, 0));
            assert!(divide(&Mesh::default(), 3, method).parts.is_empty());
        }
        let many = divide(&cube(8), 100, Metis);
        assert!(sizes(&many, 100).iter().all(|&n| n > 0));
        assert!(partition(&cube(2), 0, &PartitionOptions::default()).is_err());
    }

    proptest! {
        #[test]
        fn every_cell_gets_a_part_that_has_weight(
            n in prop::array::uniform3(1usize..5),
            shares in prop::collection::vec(0.0f64..3.0, 1..9)
                .prop_filter("all zero", |w| w.iter().sum::<f64>() > 0.0),
        ) {
            let mesh = mixed_box(n);
            for method in [Metis, Rcb] {
                let options =
                    PartitionOptions { method, part_weights: Some(&shares), cell_weights: None };
                let partition = partition(&mesh, shares.len(), &options).unwrap();
                assert_eq!(partition.parts.len(), mesh.n_cells());
                assert!(partition.parts.iter().all(|&p| shares[p as usize] > 0.0));
            }
        }
    }
}
