//! Tests of the distribution: boxes, mixed meshes and loose bodies on 1 to 4 ranks.

use super::{distribute, distribute_slices, distribute_whole};
use crate::comm::run_threads;
use crate::generate::{BoxMesh, generate_slice};
use crate::mesh::Sets;
use crate::partition::{PartitionMethod, PartitionOptions, partition};
use crate::test_meshes::{mixed_box, two_bodies, unit_bricks, volume, with_sets};
use crate::{CellFace, CellType, Comm, Halo, LocalMesh, Mesh};
use proptest::prelude::{ProptestConfig, prop, proptest};
use std::collections::{BTreeMap, BTreeSet};

/// Members of sets by the numbers of the input: (name, node or cell, face or 0).
type Members = BTreeSet<(String, u64, u8)>;

fn members(sets: &Sets, node_ids: &[u64], cell_ids: &[u64]) -> [Members; 3] {
    let mut all = [const { Members::new() }; 3];
    for (name, set) in &sets.nodes {
        all[0].extend(set.iter().map(|&n| (name.clone(), node_ids[n as usize], 0)));
    }
    for (name, set) in &sets.cells {
        all[1].extend(set.iter().map(|&c| (name.clone(), cell_ids[c as usize], 0)));
    }
    for (name, set) in &sets.faces {
        all[2].extend(
            set.iter()
                .map(|f| (name.clone(), cell_ids[f.cell as usize], f.face)),
        );
    }
    all
}

/// Those members that are among the nodes and cells given.
fn restricted(whole: &[Members; 3], nodes: &BTreeSet<u64>, cells: &BTreeSet<u64>) -> [Members; 3] {
    let held = [nodes, cells, cells];
    [0, 1, 2].map(|k| {
        whole[k]
            .iter()
            .filter(|m| held[k].contains(&m.1))
            .cloned()
            .collect()
    })
}

/// Collective. Holds a local mesh against the whole mesh it came from.
fn check_against(whole: &Mesh, local: &LocalMesh, comm: &Comm) {
    check_numbers(whole, local, comm);
    check_cells(whole, local, comm);
    check_order(local);
    check_halo(local, comm);

    let node_ids: BTreeSet<u64> = local.node_ids.iter().copied().collect();
    let cell_ids: BTreeSet<u64> = local.cell_ids.iter().copied().collect();
    let expected = members(&whole.sets, &whole.node_ids, &whole.cell_ids);
    let expected = restricted(&expected, &node_ids, &cell_ids);
    assert_eq!(
        members(&local.sets, &local.node_ids, &local.cell_ids),
        expected
    );
    assert!(local.sets.nodes.keys().eq(whole.sets.nodes.keys()));
    assert!(local.sets.cells.keys().eq(whole.sets.cells.keys()));
    assert!(local.sets.faces.keys().eq(whole.sets.faces.keys()));
}

/// Totals, coordinates and that each number is owned once.
fn check_numbers(whole: &Mesh, local: &LocalMesh, comm: &Comm) {
    let coords: BTreeMap<u64, [f64; 3]> = whole
        .node_ids
        .iter()
        .copied()
        .zip(whole.coords.iter().copied())
        .collect();
    assert_eq!(local.node_ids.len(), local.nodes.n_local());
    for (id, x) in local.node_ids.iter().zip(&local.coords) {
        assert_eq!(coords[id], *x);
    }
    let used: BTreeSet<u64> = whole
        .cells
        .nodes
        .iter()
        .map(|&n| whole.node_ids[n as usize])
        .collect();
    let owned = comm
        .all_gather(&local.node_ids[..local.nodes.n_owned()])
        .concat();
    assert_eq!(owned.len(), used.len());
    assert_eq!(owned.into_iter().collect::<BTreeSet<u64>>(), used);
    let owned = comm
        .all_gather(&local.cell_ids[..local.n_owned_cells])
        .concat();
    assert_eq!(owned.len(), whole.n_cells());
    assert_eq!(local.n_global_cells, whole.n_cells() as u64);
    let expected: BTreeSet<u64> = whole.cell_ids.iter().copied().collect();
    assert_eq!(owned.into_iter().collect::<BTreeSet<u64>>(), expected);

    let volumes = (0..local.n_owned_cells).map(|c| volume(&local.cells, c, &local.coords));
    let total = comm.sum(volumes.sum());
    let expected: f64 = (0..whole.n_cells())
        .map(|c| volume(&whole.cells, c, &whole.coords))
        .sum();
    assert!((total - expected).abs() < 1e-10 * expected.max(1.0));
}

/// Cells are those of the whole, and exactly those owned or touching an owned node are held.
fn check_cells(whole: &Mesh, local: &LocalMesh, comm: &Comm) {
    let index: BTreeMap<u64, usize> = whole.cell_ids.iter().copied().zip(0..).collect();
    let n_owned = local.nodes.n_owned();
    let owned_nodes: BTreeSet<u64> = local.node_ids[..n_owned].iter().copied().collect();
    let ids_of = |cell: usize| -> Vec<u64> {
        whole
            .cells
            .nodes_of(cell)
            .iter()
            .map(|&n| whole.node_ids[n as usize])
            .collect()
    };
    for (cell, id) in local.cell_ids.iter().enumerate() {
        let nodes = local.cells.nodes_of(cell).iter();
        let nodes: Vec<u64> = nodes.map(|&n| local.node_ids[n as usize]).collect();
        assert_eq!(nodes, ids_of(index[id]));
        assert_eq!(local.cells.types[cell], whole.cells.types[index[id]]);
    }
    let owned: BTreeSet<u64> = local.cell_ids[..local.n_owned_cells]
        .iter()
        .copied()
        .collect();
    let touches = |cell: usize| ids_of(cell).iter().any(|n| owned_nodes.contains(n));
    let expected: BTreeSet<u64> = (0..whole.n_cells())
        .filter(|&c| owned.contains(&whole.cell_ids[c]) || touches(c))
        .map(|c| whole.cell_ids[c])
        .collect();
    let held: BTreeSet<u64> = local.cell_ids.iter().copied().collect();
    assert_eq!(held.len(), local.cell_ids.len());
    assert_eq!(held, expected, "rank {}", comm.rank());
}

/// Owned cells, then ghosts, each by smallest node; sets ascending without repetition; no loose node.
fn check_order(local: &LocalMesh) {
    let first: Vec<u32> = (0..local.n_cells())
        .map(|c| local.cells.nodes_of(c).iter().copied().min().unwrap())
        .collect();
    let (owned, ghosts) = first.split_at(local.n_owned_cells);
    assert!(owned.is_sorted() && ghosts.is_sorted());
    let is_strict = |set: &Vec<u32>| set.windows(2).all(|w| w[0] < w[1]);
    assert!(
        local
            .sets
            .nodes
            .values()
            .chain(local.sets.cells.values())
            .all(is_strict)
    );
    let is_strict = |set: &Vec<CellFace>| set.windows(2).all(|w| w[0] < w[1]);
    assert!(local.sets.faces.values().all(is_strict));
    let used: BTreeSet<u32> = local.cells.nodes.iter().copied().collect();
    assert_eq!(used.len(), local.nodes.n_local());
}

/// Ghosts get the numbers that their owners know them by, and owners count their holders.
fn check_halo(local: &LocalMesh, comm: &Comm) {
    let halo = Halo::new(comm, &local.nodes);
    let (owned, expected) = local.node_ids.split_at(local.nodes.n_owned());
    let mut ghosts = vec![0; local.nodes.n_ghosts()];
    halo.forward(comm, owned, &mut ghosts, 1);
    assert_eq!(ghosts, expected);

    let mut holders = vec![0.0; local.nodes.n_owned()];
    halo.reverse_add(comm, &vec![1.0; ghosts.len()], &mut holders, 1);
    let mut counted = vec![0.0; holders.len()];
    halo.send_indices()
        .iter()
        .for_each(|&n| counted[n as usize] += 1.0);
    assert_eq!(holders, counted);
}

/// Distributes a mesh that rank 0 holds, on 1 to 4 ranks.
fn check_whole(whole: &Mesh, method: PartitionMethod) {
    let options = PartitionOptions {
        method,
        ..Default::default()
    };
    for n_ranks in 1..=4 {
        run_threads(n_ranks, |comm| {
            let mesh = || {
                if comm.is_root() {
                    whole.clone()
                } else {
                    Mesh::default()
                }
            };
            let (local, report) = distribute_whole(comm, mesh(), &options).unwrap();
            check_against(whole, &local, comm);
            let serial = partition(whole, n_ranks, &options).unwrap();
            assert_eq!(report.edge_cut, serial.edge_cut);
            assert_eq!(report.method, serial.method);
            let (again, _) = distribute_whole(comm, mesh(), &options).unwrap();
            assert_eq!(again, local);
        });
    }
}

#[test]
fn a_mesh_on_rank_0_reaches_all() {
    for mesh in [
        mixed_box([4, 3, 2]),
        two_bodies(),
        mixed_box([1, 1, 1]),
        mixed_box([2, 1, 1]),
    ] {
        check_whole(&with_sets(mesh), PartitionMethod::Metis);
    }
    check_whole(&with_sets(mixed_box([5, 2, 2])), PartitionMethod::Rcb);
    check_whole(&Mesh::default(), PartitionMethod::Auto);
}

#[test]
fn generated_boxes_complete_each_other() {
    for cell_type in CellType::SOLIDS {
        for cells in [[3, 2, 4], [1, 1, 2]] {
            let spec = unit_bricks(cell_type, cells);
            let whole = generate_slice(&spec, &Comm::alone(), None).unwrap();
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let slice = generate_slice(&spec, comm, None).unwrap();
                    let (local, report) = distribute_slices(comm, slice, None).unwrap();
                    check_against(&whole, &local, comm);
                    assert_eq!(report.method, "blocks");
                    assert!(n_ranks > 1 || (report.edge_cut == 0 && report.halo_nodes_max == 0));
                });
            }
        }
    }
}

#[test]
fn a_report_measures_cut_and_halo() {
    run_threads(2, |comm| {
        let spec = BoxMesh {
            size: [1.0; 3],
            ..unit_bricks(CellType::Hex8, [4, 4, 8])
        };
        let slice = generate_slice(&spec, comm, None).unwrap();
        let (local, report) = distribute_slices(comm, slice, None).unwrap();
        assert_eq!(report.edge_cut, 16);
        assert_eq!(report.imbalance, 1.0);
        assert_eq!(local.nodes.n_global(), 225);
        assert!(local.nodes.n_owned().abs_diff(112) <= 1);
        // Half of the sheet between the ranks, half of the next, and a line or two where they meet.
        assert!(
            (25..=35).contains(&report.halo_nodes_max),
            "{}",
            report.halo_nodes_max
        );
    });
}

#[test]
fn slices_on_all_ranks_can_be_dealt_anew() {
    let spec = unit_bricks(CellType::Tet10, [2, 3, 2]);
    let whole = generate_slice(&spec, &Comm::alone(), None).unwrap();
    for n_ranks in 1..=4 {
        run_threads(n_ranks, |comm| {
            let slice = generate_slice(&spec, comm, None).unwrap();
            let parts: Vec<u32> = slice
                .cell_ids
                .iter()
                .map(|id| (id * 7 % n_ranks as u64) as u32)
                .collect();
            check_against(&whole, &distribute(comm, slice, &parts).unwrap(), comm);
            // All to the last rank: the others end up with nothing.
            let slice = generate_slice(&spec, comm, None).unwrap();
            let parts = vec![n_ranks as u32 - 1; slice.n_cells()];
            check_against(&whole, &distribute(comm, slice, &parts).unwrap(), comm);
        });
    }
}

#[test]
fn unused_nodes_are_dropped() {
    let mut mesh = with_sets(mixed_box([2, 1, 1]));
    mesh.coords.push([9.0; 3]);
    mesh.node_ids.push(999);
    let last = mesh.n_nodes() as u32 - 1;
    mesh.sets.nodes.insert("loose".to_owned(), vec![last]);
    check_whole(&mesh, PartitionMethod::Rcb);
}

#[test]
fn numbers_used_twice_are_refused_on_every_rank() {
    for n_ranks in 1..=4 {
        run_threads(n_ranks, |comm| {
            let mut mesh = mixed_box([2, 2, 1]);
            let n_cells = mesh.n_cells();
            if n_ranks == 1 {
                mesh.cell_ids[4] = 10;
            }
            // On several ranks all hold the same cells, so every number occurs n_ranks times.
            let parts = vec![0; n_cells];
            let error = distribute(comm, mesh, &parts).unwrap_err().to_string();
            let lowest = if n_ranks == 1 { 10 } else { 3 };
            assert!(
                error.contains(&format!("element {lowest} is defined twice")),
                "{error}"
            );

            let mut mesh = if comm.is_root() {
                mixed_box([2, 1, 1])
            } else {
                Mesh::default()
            };
            if let Some(id) = mesh.node_ids.get_mut(3) {
                *id = 1;
            }
            let parts = vec![0; mesh.n_cells()];
            let error = distribute(comm, mesh, &parts).unwrap_err().to_string();
            assert!(error.contains("node 1 is defined twice"), "{error}");
        });
    }
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    run_threads(2, |comm| {
        let mesh = if comm.is_root() {
            mixed_box([2, 1, 1])
        } else {
            Mesh::default()
        };
        let parts = vec![2; mesh.n_cells()];
        assert!(distribute(comm, mesh.clone(), &parts).is_err());
        assert!(distribute(comm, mesh, &[0]).is_err());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_parts_make_a_valid_distribution(
        n in prop::array::uniform3(1usize..4),
        n_ranks in 1usize..5,
        seeds in prop::collection::vec(0u32..4, 54),
    ) {
        let whole = with_sets(mixed_box(n));
        run_threads(n_ranks, |comm| {
            let mesh = if comm.is_root() { whole.clone() } else { Mesh::default() };
            let parts: Vec<u32> =
                seeds[..mesh.n_cells()].iter().map(|s| s % n_ranks as u32).collect();
            check_against(&whole, &distribute(comm, mesh, &parts).unwrap(), comm);
        });
    }
}
