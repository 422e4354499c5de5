//! `Comm`, the group of ranks: start-up, collectives, point-to-point exchange, abort.
//!
//! Two backends behind one type: MPI (cargo feature `mpi`) and threads that act as ranks, for tests and for builds
//! without MPI. Only `comm/mpi.rs` names the crate `mpi`.
//!
//! Every function that takes `&Comm` is collective. `Comm` is not `Sync`: it cannot be captured by a rayon closure.
//! Sums over ranks are taken in a fixed order, so the same input on the same number of ranks gives the same bits.
//!
//! Invariant: moves plain numbers; knows no mesh, matrix or file.

#[cfg(feature = "mpi")]
mod mpi;
mod threads;

use crate::error::{Error, Result};
use bytemuck::{NoUninit, Pod};
use std::cell::Cell;
use std::marker::PhantomData;

pub use threads::run_threads;

enum Backend {
    #[cfg(feature = "mpi")]
    Mpi(self::mpi::MpiRank),
    Threads(threads::ThreadRank),
}

/// The group of ranks that solve one case together.
pub struct Comm {
    backend: Backend,
    not_sync: PhantomData<Cell<()>>,
}

/// Messages on their way, begun by [`Comm::start_exchange`].
pub struct Exchange<T> {
    pending: Pending,
    receives: Vec<(usize, usize)>,
    element: PhantomData<T>,
}

enum Pending {
    #[cfg(feature = "mpi")]
    Mpi(self::mpi::PendingMessages),
    Threads,
}

/// Operation of a reduction over ranks.
#[derive(Clone, Copy)]
enum Reduction {
    Sum,
    Max,
    Min,
}

/// Where the ranks run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLayout {
    /// Number of different hosts.
    pub n_hosts: usize,
    /// Ranks that share this rank's host, this one included, ascending.
    pub ranks_here: Vec<usize>,
}

impl Comm {
    /// Starts MPI if a launcher (`mpirun`, `srun`) started this process, else forms a group of one rank.
    ///
    /// # Errors
    /// A launcher of another MPI than the one linked, or a launcher of several processes for a program built without
    /// MPI: without this check the user would get N independent copies of the run.
    pub fn start() -> Result<Comm> {
        let launched = launched_ranks();
        #[cfg(feature = "mpi")]
        if launched.is_some() {
            let rank = self::mpi::MpiRank::start(launched)?;
            return Ok(Comm::with(Backend::Mpi(rank)));
        }
        if let Some(n) = launched.filter(|&n| n > 1) {
            return Err(Error::machine(format!(
                "this fem-solve was built without MPI but was started on {n} ranks"
            ))
            .advice("start it without mpirun, or build it with the cargo feature `mpi`"));
        }
        Ok(Comm::alone())
    }

    /// A group of one rank.
    pub fn alone() -> Comm {
        Comm::with(Backend::Threads(threads::ThreadRank::alone()))
    }

    fn with(backend: Backend) -> Comm {
        Comm {
            backend,
            not_sync: PhantomData,
        }
    }

    /// Number of this rank, from 0.
    pub fn rank(&self) -> usize {
        match &self.backend {
            #[cfg(feature = "mpi")]
            Backend::Mpi(b) => b.rank(),
            Backend::Threads(b) => b.rank(),
        }
    }

    /// Number of ranks in the group.
    pub fn n_ranks(&self) -> usize {
        match &self.backend {
            #[cfg(feature = "mpi")]
            Backend::Mpi(b) => b.n_ranks(),
            Backend::Threads(b) => b.n_ranks(),
        }
    }

    /// Whether this is rank 0, the one that speaks to the user.
    pub fn is_root(&self) -> bool {
        self.rank() == 0
    }

    /// The MPI communicator for libraries that need it (parallel HDF5); `None` for a group of threads or of one rank
    /// started without a launcher.
    #[cfg(feature = "mpi")]
    pub fn raw_mpi(&self) -> Option<::mpi::ffi::MPI_Comm> {
        match &self.backend {
            Backend::Mpi(b) => Some(b.raw()),
            Backend::Threads(_) => None,
        }
    }

    /// Name and version of what carries the messages.
    pub fn library(&self) -> String {
        match &self.backend {
            #[cfg(feature = "mpi")]
            Backend::Mpi(_) => self::mpi::library_version(),
            Backend::Threads(_) => "no MPI".to_owned(),
        }
    }

    /// Collective. Returns when every rank has called it.
    pub fn barrier(&self) {
        self.all_gather::<u8>(&[]);
    }

    /// Collective. What every rank passed, by rank; lengths may differ.
    pub fn all_gather<T: Pod>(&self, values: &[T]) -> Vec<Vec<T>> {
        let bytes = bytemuck::cast_slice(values);
        let parts = match &self.backend {
            #[cfg(feature = "mpi")]
            Backend::Mpi(b) => b.all_gather(bytes),
            Backend::Threads(b) => b.all_gather(bytes),
        };
        parts.iter().map(|p| vec_from_bytes(p)).collect()
    }

    /// Collective. On rank 0 what every rank passed, by rank; empty elsewhere.
    pub fn gather<T: Pod>(&self, values: &[T]) -> Vec<Vec<T>> {
        let mut sends = vec![Vec::new(); self.n_ranks()];
        sends[0] = values.to_vec();
        let received = self.all_to_all(sends);
        if self.is_root() { received } else { Vec::new() }
    }

    /// Collective. What rank `root` passed; the others' `values` are ignored.
    pub fn broadcast<T: Pod>(&self, root: usize, values: Vec<T>) -> Vec<T> {
        if self.n_ranks() == 1 {
            return values;
        }
        let bytes = match &self.backend {
            #[cfg(feature = "mpi")]
            Backend::Mpi(b) => b.broadcast(root, bytemuck::cast_slice(&values)),
            Backend::Threads(b) => b.broadcast(root, bytemuck::cast_slice(&values)),
        };
        vec_from_bytes(&bytes)
    }

    /// Collective. Entry r of `sends` goes to rank r; entry r of the result came from rank r.
    pub fn all_to_all<T: Pod>(&self, sends: Vec<Vec<T>>) -> Vec<Vec<T>> {
        let n_ranks = self.n_ranks();
        assert_eq!(sends.len(), n_ranks, "one list for each rank");
        let me = self.rank();
        let lengths: Vec<u64> = sends.iter().map(|s| s.len() as u64).collect();
        let lengths = self.all_gather(&lengths);
        let receives: Vec<(usize, usize)> = (0..n_ranks)
            .filter(|&r| r != me)
            .map(|r| (r, lengths[r][me] as usize))
            .collect();
        let outgoing: Vec<(usize, &[T])> = (0..n_ranks)
            .filter(|&r| r != me)
            .map(|r| (r, sends[r].as_slice()))
            .collect();
        let exchange = self.start_exchange(&outgoing, &receives);
        let mut result: Vec<Vec<T>> = (0..n_ranks).map(|_| Vec::new()).collect();
        for ((rank, _), values) in receives.iter().zip(self.finish_exchange(exchange)) {
            result[*rank] = values;
        }
        result[me] = sends.into_iter().nth(me).unwrap_or_default();
        result
    }

    /// Collective among neighbors. Begins to send `values` to each rank named and to receive that many values from
    /// each rank of `receives`; empty messages are not sent. Exchanges finish in the order in which they began.
    pub fn start_exchange<T: NoUninit>(
        &self,
        sends: &[(usize, &[T])],
        receives: &[(usize, usize)],
    ) -> Exchange<T> {
        let sends = sends
            .iter()
            .filter(|(_, v)| !v.is_empty())
            .map(|&(r, v)| (r, bytemuck::cast_slice(v)));
        let pending = match &self.backend {
            #[cfg(feature = "mpi")]
            Backend::Mpi(b) => {
                let size = size_of::<T>();
                let wanted = receives
                    .iter()
                    .filter(|(_, n)| *n > 0)
                    .map(|&(r, n)| (r, n * size));
                Pending::Mpi(b.start_messages(sends, wanted))
            }
            Backend::Threads(b) => {
                sends.for_each(|(rank, bytes)| b.send(rank, bytes.to_vec()));
                Pending::Threads
            }
        };
        Exchange {
            pending,
            receives: receives.to_vec(),
            element: PhantomData,
        }
    }

    /// Waits for the messages of an exchange; one list for each entry of its `receives`, in that order.
    pub fn finish_exchange<T: Pod>(&self, exchange: Exchange<T>) -> Vec<Vec<T>> {
        let mut arrived = match (exchange.pending, &self.backend) {
            #[cfg(feature = "mpi")]
            (Pending::Mpi(pending), Backend::Mpi(_)) => pending.wait(),
            (_, Backend::Threads(b)) => {
                let wanted = exchange.receives.iter().filter(|(_, n)| *n > 0);
                wanted.map(|(rank, _)| b.receive(*rank)).collect::<Vec<_>>()
            }
            #[cfg(feature = "mpi")]
            _ => unreachable!("an exchange is finished by the group that began it"),
        }
        .into_iter();
        let lists = exchange.receives.iter().map(|&(_, n)| match n {
            0 => Vec::new(),
            _ => {
                let values: Vec<T> = vec_from_bytes(&arrived.next().unwrap_or_default());
                assert_eq!(
                    values.len(),
                    n,
                    "a message of another length than announced"
                );
                values
            }
        });
        lists.collect()
    }

    /// Collective. Sum over ranks, entry by entry, left in `values` on every rank.
    pub fn sum_into(&self, values: &mut [f64]) {
        self.reduce(values, Reduction::Sum);
    }

    /// Collective. Sum over ranks.
    pub fn sum(&self, value: f64) -> f64 {
        let mut values = [value];
        self.sum_into(&mut values);
        values[0]
    }

    /// Collective. Sum of counts over ranks.
    pub fn sum_u64(&self, value: u64) -> u64 {
        self.all_gather(&[value]).iter().map(|v| v[0]).sum()
    }

    /// Collective. Largest value over ranks.
    pub fn max(&self, value: f64) -> f64 {
        let mut values = [value];
        self.reduce(&mut values, Reduction::Max);
        values[0]
    }

    /// Collective. Smallest value over ranks.
    pub fn min(&self, value: f64) -> f64 {
        let mut values = [value];
        self.reduce(&mut values, Reduction::Min);
        values[0]
    }

    /// Collective. Whether `value` is true on any rank.
    pub fn any(&self, value: bool) -> bool {
        self.max(f64::from(u8::from(value))) > 0.0
    }

    /// Collective. Sum of `value` over the ranks below this one.
    pub fn sum_below(&self, value: u64) -> u64 {
        self.all_gather(&[value])[..self.rank()]
            .iter()
            .map(|v| v[0])
            .sum()
    }

    fn reduce(&self, values: &mut [f64], op: Reduction) {
        if self.n_ranks() == 1 {
            return;
        }
        match &self.backend {
            #[cfg(feature = "mpi")]
            Backend::Mpi(b) => b.reduce(values, op),
            Backend::Threads(b) => b.reduce(values, op),
        }
    }

    /// Collective. Passes `result` through if it is Ok on every rank; otherwise every rank gets the error of the
    /// lowest rank that failed. Stands before any collective that follows a step that can fail on one rank.
    pub fn all_ok<T>(&self, result: Result<T>) -> Result<T> {
        if self.n_ranks() == 1 {
            return result;
        }
        let failed_rank = if result.is_err() {
            self.rank() as f64
        } else {
            f64::INFINITY
        };
        let first = self.min(failed_rank);
        if first.is_infinite() {
            return result;
        }
        let bytes = match &result {
            Err(error) => error.to_bytes(),
            Ok(_) => Vec::new(),
        };
        Err(Error::from_bytes(&self.broadcast(first as usize, bytes)))
    }

    /// Collective. Every rank gets rank 0's text.
    pub fn broadcast_text(&self, text: String) -> String {
        String::from_utf8_lossy(&self.broadcast(0, text.into_bytes())).into_owned()
    }

    /// Collective. Which ranks share a host.
    pub fn host_layout(&self) -> HostLayout {
        let names = self.all_gather(host_name().as_bytes());
        let mut distinct = names.clone();
        distinct.sort();
        distinct.dedup();
        let mine = &names[self.rank()];
        let ranks_here = (0..names.len()).filter(|&r| &names[r] == mine).collect();
        HostLayout {
            n_hosts: distinct.len(),
            ranks_here,
        }
    }

    /// Ends all ranks at once with this exit code, whatever they are doing.
    pub fn abort(&self, code: i32) -> ! {
        match &self.backend {
            #[cfg(feature = "mpi")]
            Backend::Mpi(b) => b.abort(code),
            Backend::Threads(_) => std::process::exit(code),
        }
    }
}

/// Name of the machine this process runs on.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::env::var("HOSTNAME").map_err(std::io::Error::other))
        .map_or_else(|_| "localhost".to_owned(), |s| s.trim().to_owned())
}

/// How many processes the launcher says it started; `None` if no launcher started this one.
fn launched_ranks() -> Option<usize> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"]
        .iter()
        .find_map(|name| number(name))
        // Inside a Slurm batch script SLURM_NTASKS is set before any srun; a task of srun also has PMI or PMIx set.
        .or_else(|| std::env::var_os("PMIX_RANK").and_then(|_| number("SLURM_NTASKS").or(Some(1))))
}

/// Copies bytes into values of any alignment.
fn vec_from_bytes<T: Pod>(bytes: &[u8]) -> Vec<T> {
    let mut values = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
    values
}

#[cfg(test)]
mod tests {
    use super::{Comm, run_threads};
    use crate::error::Error;

    fn on_1_to_4_ranks(body: impl Fn(&Comm) + Sync) {
        for n in 1..=4 {
            run_threads(n, &body);
        }
    }

    #[test]
    fn collectives_agree_with_their_definition() {
        on_1_to_4_ranks(|comm| {
            let (rank, n) = (comm.rank(), comm.n_ranks());
            let gathered = comm.all_gather(&vec![rank as u32; rank]);
            assert_eq!(
                gathered,
                (0..n).map(|r| vec![r as u32; r]).collect::<Vec<_>>()
            );
            assert_eq!(comm.sum(rank as f64 + 1.0), (n * (n + 1) / 2) as f64);
            assert_eq!(comm.max(rank as f64), (n - 1) as f64);
            assert_eq!(comm.min(rank as f64), 0.0);
            assert_eq!(comm.sum_below(2), 2 * rank as u64);
            assert_eq!(comm.sum_u64(3), 3 * n as u64);
            assert_eq!(comm.broadcast(n - 1, vec![rank as f64]), [(n - 1) as f64]);
            assert!(comm.any(rank == n - 1));
            assert!(!comm.any(false));
            let gathered = comm.gather(&[rank as u64]);
            assert_eq!(gathered.len(), if rank == 0 { n } else { 0 });
            assert_eq!(comm.host_layout().ranks_here.len(), n);
        });
    }

    #[test]
    fn all_to_all_transposes() {
        on_1_to_4_ranks(|comm| {
            let (rank, n) = (comm.rank(), comm.n_ranks());
            let sends = (0..n).map(|to| vec![(rank * 10 + to) as u64; to]).collect();
            let received = comm.all_to_all(sends);
            let expected: Vec<Vec<u64>> = (0..n)
                .map(|from| vec![(from * 10 + rank) as u64; rank])
                .collect();
            assert_eq!(received, expected);
        });
    }

    #[test]
    fn exchanges_of_a_ring_finish_in_order() {
        on_1_to_4_ranks(|comm| {
            let (rank, n) = (comm.rank(), comm.n_ranks());
            if n == 1 {
                return;
            }
            let (next, previous) = ((rank + 1) % n, (rank + n - 1) % n);
            let first = comm.start_exchange(&[(next, &[rank as f64][..])], &[(previous, 1)]);
            let second =
                comm.start_exchange(&[(next, &[rank as f64 + 100.0; 2][..])], &[(previous, 2)]);
            assert_eq!(comm.finish_exchange(first), [vec![previous as f64]]);
            assert_eq!(
                comm.finish_exchange(second),
                [vec![previous as f64 + 100.0; 2]]
            );
        });
    }

    #[test]
    fn an_error_on_one_rank_reaches_all() {
        on_1_to_4_ranks(|comm| {
            let last = comm.n_ranks() - 1;
            let result = if comm.rank() == last {
                Err(Error::model("element 7 is inside out"))
            } else {
                Ok(1)
            };
            let error = comm.all_ok(result).unwrap_err();
            assert_eq!(
                (error.exit_code(), error.to_string().as_str()),
                (3, "element 7 is inside out")
            );
            assert_eq!(comm.all_ok(Ok(comm.rank())), Ok(comm.rank()));
        });
    }

    #[test]
    fn a_panic_on_one_rank_ends_the_others() {
        let outcome = std::panic::catch_unwind(|| {
            run_threads(3, |comm| {
                assert!(comm.rank() != 1, "rank 1 fails alone");
                comm.barrier();
            });
        });
        assert!(outcome.is_err());
    }
}
