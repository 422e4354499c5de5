//! Degree of parallelism: how many threads each rank uses, and why.
//!
//! Ranks on one host share its cores: a rank bound to cores of its own by the launcher uses those, ranks that may run
//! anywhere divide what the host offers. A small model uses fewer threads than offered, since below
//! [`DOFS_PER_THREAD`] the hand-over between threads costs more than the second thread earns.
//!
//! Invariant: decides from counts only; starts no thread but the pool in [`start_threads`].

use fem_mesh::{Comm, Error, Result};
use std::sync::Mutex;

/// Threads of the pool of this process, once it is started.
static STARTED: Mutex<Option<usize>> = Mutex::new(None);

/// Fewest degrees of freedom that pay for one more thread.
///
/// Measured on boxes of hex8 with block-Jacobi CG on two cores: the solution took two threads 1.25 times as long as one
/// at 6,600 dof, as long at 14,700, and 1.4 and 2.0 times less at 27,800 and 46,900.
pub const DOFS_PER_THREAD: u64 = 8_000;

/// Ranks and threads of a run, the same on every rank but for `threads`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parallelism {
    /// Number of ranks.
    pub n_ranks: usize,
    /// Number of hosts.
    pub n_hosts: usize,
    /// Threads of this rank.
    pub threads: usize,
    /// Why these numbers, for the log and the summary (rank 0's view).
    pub decision: String,
}

/// Collective. Cores that this rank may use without taking any from another rank of its host, with the reason.
fn cores_for_this_rank(comm: &Comm) -> (usize, String) {
    let mine = allowed_cpus();
    let layout = comm.host_layout();
    let lists = comm.all_gather(&mine);
    let quota = std::thread::available_parallelism().map_or(1, usize::from);
    if layout.ranks_here.len() == 1 {
        return (
            quota,
            format!("{quota} of the host's cores are open to this rank"),
        );
    }
    let others = || {
        layout
            .ranks_here
            .iter()
            .filter(|&&r| r != comm.rank())
            .flat_map(|&r| &lists[r])
    };
    if !mine.is_empty() && !others().any(|cpu| mine.contains(cpu)) {
        let n = mine.len();
        return (
            n,
            format!("the launcher bound each rank to {n} core(s) of its own"),
        );
    }
    let mut host: Vec<u32> = layout
        .ranks_here
        .iter()
        .flat_map(|&r| lists[r].clone())
        .collect();
    host.sort_unstable();
    host.dedup();
    let n_cores = host.len().max(quota);
    let n_ranks = layout.ranks_here.len();
    let share = (n_cores / n_ranks).max(1);
    let crowded = if n_ranks > n_cores {
        ", oversubscribed"
    } else {
        ""
    };
    (
        share,
        format!("{n_ranks} ranks share {n_cores} cores of the host{crowded}"),
    )
}

/// Processors that the system lets this process run on; empty where the system does not say.
fn allowed_cpus() -> Vec<u32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))
        .unwrap_or("");
    parse_cpu_list(list)
}

/// "0-3,8" into 0 1 2 3 8; pieces that are no numbers are left out.
fn parse_cpu_list(list: &str) -> Vec<u32> {
    let ranges = list.trim().split(',').filter_map(|piece| {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?)
    });
    ranges.flatten().collect()
}

/// Collective. Chooses the threads of each rank for a model of `n_dofs`; `ceiling` is the user's cap, if any.
pub fn decide(comm: &Comm, n_dofs: u64, ceiling: Option<usize>) -> Parallelism {
    let (cores, cores_reason) = cores_for_this_rank(comm);
    let n_ranks = comm.n_ranks();
    let per_rank = n_dofs / n_ranks as u64;
    let worth = usize::try_from(per_rank / DOFS_PER_THREAD)
        .unwrap_or(usize::MAX)
        .max(1);
    let mut threads = cores;
    let mut reasons = vec![cores_reason];
    if let Some(cap) = ceiling.filter(|&cap| cap < threads) {
        threads = cap.max(1);
        reasons.push(format!("capped at {threads} by the user"));
    }
    if worth < threads {
        threads = worth;
        reasons.push(format!(
            "{per_rank} dof a rank pay for {threads} thread(s): below {DOFS_PER_THREAD} dof a thread more would be slower"
        ));
    }
    if let Some(started) = *STARTED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
    {
        threads = started;
        reasons = vec!["the threads were started for an earlier case of this process".to_owned()];
    }
    let n_hosts = comm.host_layout().n_hosts;
    let decision = format!(
        "{n_ranks} rank(s) x {threads} thread(s) on {n_hosts} host(s): {}",
        reasons.join("; ")
    );
    Parallelism {
        n_ranks,
        n_hosts,
        threads,
        decision: comm.broadcast_text(decision),
    }
}

/// Starts the thread pool that all parallel loops of this process use; the calling thread is one of its workers, so
/// that MPI is only called from the main thread. Later calls change nothing: one process has one pool, and a second
/// run in it uses the threads of the first (see [`decide`]).
///
/// # Errors
/// The system refuses to start threads.
pub fn start_threads(threads: usize) -> Result<()> {
    let mut started = STARTED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if started.is_none() {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .use_current_thread()
            .build_global()
            .map_err(|e| {
                Error::machine(format!("cannot start {threads} threads: {e}"))
                    .advice("use fewer with --threads")
            })?;
        *started = Some(threads);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{DOFS_PER_THREAD, decide, parse_cpu_list};
    use fem_mesh::Comm;
    use fem_mesh::comm::run_threads;

    #[test]
    fn cpu_lists_are_read() {
        assert_eq!(parse_cpu_list("\t0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(parse_cpu_list(""), [] as [u32; 0]);
    }

    #[test]
    fn small_models_and_ceilings_limit_the_threads() {
        let comm = Comm::alone();
        assert_eq!(decide(&comm, 10, None).threads, 1);
        let large = decide(&comm, 1 << 40, None);
        assert_eq!(
            large.threads,
            std::thread::available_parallelism().unwrap().get()
        );
        assert_eq!(decide(&comm, 1 << 40, Some(1)).threads, 1);
    }

    #[test]
    fn ranks_of_one_host_share_its_cores() {
        let cores = std::thread::available_parallelism().unwrap().get();
        run_threads(3, |comm| {
            let parallelism = decide(comm, DOFS_PER_THREAD << 20, None);
            assert_eq!(parallelism.threads, (cores / 3).max(1));
            assert_eq!(parallelism.n_hosts, 1);
        });
    }
}
