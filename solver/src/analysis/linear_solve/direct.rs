//! The direct method: what it costs, whether it can be afforded, the factorization.
//!
//! Invariant: names degrees of freedom by the numbers of the input; knows no element and no load.

use super::{MIB, Nodes};
use crate::direct::{DirectAnalysis, DirectSolver};
use crate::linalg::DistMatrix;
use crate::links::name_node;
use crate::log::Log;
use fem_mesh::{Comm, Error, Result};

/// Most work of a factorization that `auto` accepts after the iterations failed: less than a minute on one core.
const MAX_DIRECT_FLOPS: f64 = 2e12;

/// Collective. Orders the matrix and counts what its factorization costs.
///
/// # Errors
/// Too many rows for this method, or too little memory.
pub(super) fn analyze(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    log: &mut Log,
) -> Result<DirectAnalysis<3>> {
    log.phase("setup", "order the matrix for factorization", |_| {
        DirectAnalysis::new(comm, matrix)
    })
}

/// Collective. Whether a factorization takes a reasonable time and finds the memory it needs.
pub(super) fn is_affordable(comm: &Comm, analysis: &DirectAnalysis<3>) -> bool {
    let cost = analysis.cost();
    cost.flops <= MAX_DIRECT_FLOPS && cost.memory <= available_memory(comm)
}

/// Collective. That a factorization finds the memory it needs.
///
/// # Errors
/// Too little memory.
pub(super) fn require_memory(comm: &Comm, analysis: &DirectAnalysis<3>) -> Result<()> {
    let available = available_memory(comm);
    let wanted = analysis.cost().memory;
    if wanted > available {
        let what = format!(
            "the direct solution would take about {:.0} MiB of memory, and {:.0} MiB are free",
            wanted / MIB,
            available / MIB
        );
        return Err(Error::machine(what).advice("use solver.method = \"cg\""));
    }
    Ok(())
}

/// Collective. Bytes that the system of rank 0 can still give; infinite where it does not say.
fn available_memory(comm: &Comm) -> f64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    let bytes = kib.map_or(f64::INFINITY, |kib| 1024.0 * kib);
    comm.broadcast(0, vec![bytes])[0]
}

/// Collective. Factorizes.
///
/// # Errors
/// A matrix that is not positive definite, with the place, or too little memory.
pub(super) fn factorize(
    comm: &Comm,
    matrix: &DistMatrix<3>,
    nodes: Nodes,
    analysis: DirectAnalysis<3>,
    log: &mut Log,
) -> Result<DirectSolver> {
    let cost = analysis.cost();
    log.note(&format!(
        "  {:.2e} entries in the factor, {:.1e} flop",
        cost.factor_entries, cost.flops
    ));
    let name_row = |comm: &Comm, row: u64| name_dof(comm, nodes, row);
    log.phase("setup", "factorize", |_| {
        analysis.factorize(comm, matrix, &name_row)
    })
}

/// Collective. A global degree of freedom in the numbers of the input: "node 7 in direction x".
pub(super) fn name_dof(comm: &Comm, nodes: Nodes, dof: u64) -> String {
    let mesh = nodes.mesh;
    let local = mesh
        .nodes
        .local(dof / 3)
        .filter(|&n| n < mesh.nodes.n_owned());
    let node = name_node(comm.sum_u64(local.map_or(0, |n| mesh.node_ids[n])));
    format!(
        "{node} in direction {}",
        ["x", "y", "z"][(dof % 3) as usize]
    )
}
