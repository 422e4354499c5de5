//! The MPI backend, on rsmpi's C bindings where its safe interface hides return codes or lacks a call.
//!
//! A panic on one rank would leave the others waiting for ever (unwinding finalizes MPI and waits): a panic hook
//! ends all ranks. Messages are cut into pieces below the 2^31 bytes that an MPI count can express.
//!
//! Invariant: the only file that names the crate `mpi`.
#![allow(unsafe_code)]

use super::Reduction;
use crate::error::{Error, Result};
use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AsRaw, Communicator, CommunicatorCollectives, Root};

/// Largest piece of a message, bytes.
const MAX_PIECE: usize = 1 << 30;
/// Tag of all our messages; MPI keeps the order of messages of one tag between two ranks.
const TAG: i32 = 41;

pub(super) struct MpiRank {
    world: SimpleCommunicator,
    // Finalizes MPI when dropped; after `world`.
    _universe: Universe,
}

impl MpiRank {
    pub(super) fn start(launched: Option<usize>) -> Result<MpiRank> {
        let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Funneled)
            .ok_or_else(|| Error::machine("MPI was already started in this process"))?;
        let world = universe.world();
        let n_ranks = world.size() as usize;
        if let Some(n) = launched.filter(|&n| n != n_ranks) {
            let what = format!(
                "the launcher started {n} processes but the MPI library linked here sees {n_ranks}"
            );
            let advice = format!("use the mpirun that belongs to {}", library_version());
            return Err(Error::machine(what).advice(advice));
        }
        if n_ranks > 1 {
            abort_all_on_panic();
        }
        Ok(MpiRank {
            world,
            _universe: universe,
        })
    }

    pub(super) fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    pub(super) fn n_ranks(&self) -> usize {
        self.world.size() as usize
    }

    pub(super) fn raw(&self) -> ffi::MPI_Comm {
        self.world.as_raw()
    }

    pub(super) fn abort(&self, code: i32) -> ! {
        self.world.abort(code)
    }

    pub(super) fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let n_ranks = self.n_ranks();
        let mut lengths = vec![0u64; n_ranks];
        self.world
            .all_gather_into(&(bytes.len() as u64), &mut lengths[..]);
        let total: u64 = lengths.iter().sum();
        if lengths.iter().all(|&n| n == lengths[0]) && total < MAX_PIECE as u64 {
            let mut all = vec![0u8; total as usize];
            if total > 0 {
                self.world.all_gather_into(bytes, &mut all[..]);
                return all.chunks(bytes.len()).map(<[u8]>::to_vec).collect();
            }
            return vec![Vec::new(); n_ranks];
        }
        let me = self.rank();
        let others = || (0..n_ranks).filter(move |&r| r != me);
        let sends = others().filter(|_| !bytes.is_empty()).map(|r| (r, bytes));
        let wanted = others()
            .map(|r| (r, lengths[r] as usize))
            .filter(|(_, n)| *n > 0);
        let mut arrived = self.start_messages(sends, wanted).wait().into_iter();
        let parts = (0..n_ranks).map(|r| match r {
            r if r == me => bytes.to_vec(),
            r if lengths[r] == 0 => Vec::new(),
            _ => arrived.next().unwrap_or_default(),
        });
        parts.collect()
    }

    pub(super) fn broadcast(&self, root: usize, bytes: &[u8]) -> Vec<u8> {
        let root = self.world.process_at_rank(root as i32);
        let mut length = bytes.len() as u64;
        root.broadcast_into(&mut length);
        let mut buffer = if bytes.len() as u64 == length {
            bytes.to_vec()
        } else {
            vec![0; length as usize]
        };
        for piece in buffer.chunks_mut(MAX_PIECE) {
            root.broadcast_into(piece);
        }
        buffer
    }

    pub(super) fn reduce(&self, values: &mut [f64], op: Reduction) {
        let mine = values.to_vec();
        let op = match op {
            Reduction::Sum => SystemOperation::sum(),
            Reduction::Max => SystemOperation::max(),
            Reduction::Min => SystemOperation::min(),
        };
        self.world.all_reduce_into(&mine[..], values, op);
    }

    /// Begins to send `sends` and to receive from each of `wanted` that many bytes (none of them zero).
    pub(super) fn start_messages<'a>(
        &self,
        sends: impl Iterator<Item = (usize, &'a [u8])>,
        wanted: impl Iterator<Item = (usize, usize)>,
    ) -> PendingMessages {
        let comm = self.world.as_raw();
        let mut requests = Vec::new();
        let mut received: Vec<Vec<u8>> = Vec::new();
        for (from, length) in wanted {
            let mut buffer = vec![0u8; length];
            for piece in buffer.chunks_mut(MAX_PIECE) {
                let (data, count) = (piece.as_mut_ptr().cast(), piece.len() as i32);
                let mut request = no_request();
                // SAFETY: the buffer's heap memory is owned by the `PendingMessages` returned, which waits for the
                // request before it gives the buffer away or drops it.
                let code = unsafe {
                    ffi::MPI_Irecv(
                        data,
                        count,
                        ffi::RSMPI_UINT8_T,
                        from as i32,
                        TAG,
                        comm,
                        &raw mut request,
                    )
                };
                check(code, "MPI_Irecv");
                requests.push(request);
            }
            received.push(buffer);
        }
        let mut sent = Vec::new();
        for (to, bytes) in sends {
            let buffer = bytes.to_vec();
            for piece in buffer.chunks(MAX_PIECE) {
                let (data, count) = (piece.as_ptr().cast(), piece.len() as i32);
                let mut request = no_request();
                // SAFETY: as for receiving: the buffer outlives the request.
                let code = unsafe {
                    ffi::MPI_Isend(
                        data,
                        count,
                        ffi::RSMPI_UINT8_T,
                        to as i32,
                        TAG,
                        comm,
                        &raw mut request,
                    )
                };
                check(code, "MPI_Isend");
                requests.push(request);
            }
            sent.push(buffer);
        }
        PendingMessages {
            requests,
            received,
            sent,
        }
    }
}

fn no_request() -> ffi::MPI_Request {
    // SAFETY: a constant of the MPI library, set before any of its functions can run.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}

/// Messages that MPI is still moving, with the memory they use.
pub(super) struct PendingMessages {
    requests: Vec<ffi::MPI_Request>,
    received: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

impl PendingMessages {
    /// Waits for all of them; the received ones in the order in which they were asked for.
    pub(super) fn wait(mut self) -> Vec<Vec<u8>> {
        self.complete();
        std::mem::take(&mut self.received)
    }

    fn complete(&mut self) {
        if self.requests.is_empty() {
            return;
        }
        let count = self.requests.len() as i32;
        // SAFETY: every request was made by Isend or Irecv and has not been waited for; a null status array is
        // MPI_STATUSES_IGNORE.
        let code = unsafe {
            ffi::MPI_Waitall(
                count,
                self.requests.as_mut_ptr(),
                ffi::RSMPI_STATUSES_IGNORE,
            )
        };
        check(code, "MPI_Waitall");
        self.requests.clear();
        self.sent.clear();
    }
}

impl Drop for PendingMessages {
    fn drop(&mut self) {
        self.complete();
    }
}

fn check(code: i32, call: &str) {
    assert_eq!(code, 0, "{call} failed with MPI error code {code}");
}

/// First line of the MPI library's own description.
pub(super) fn library_version() -> String {
    let text = mpi::environment::library_version().unwrap_or_default();
    text.lines()
        .next()
        .unwrap_or("")
        .split(',')
        .next()
        .unwrap_or("")
        .trim_matches(['\0', ' '])
        .to_owned()
}

fn abort_all_on_panic() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        previous(info);
        // SAFETY: MPI is initialized (this hook is set after start-up) and MPI_Abort may be called at any time after.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, 4) };
    }));
}
