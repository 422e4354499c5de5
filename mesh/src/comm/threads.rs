//! Threads that act as ranks: mailboxes between pairs and one meeting point for collectives.
//!
//! Invariant: waiting blocks on a condition variable and never spins; a panic on one rank wakes and ends the others.

use super::{Backend, Comm, Reduction};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// One rank of a group of threads.
pub(super) struct ThreadRank {
    rank: usize,
    group: Arc<Group>,
}

struct Group {
    n_ranks: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Deposits of the collective that is gathering, by rank.
    deposits: Vec<Option<Vec<u8>>>,
    /// Result of the last complete collective. The next one cannot complete before every rank has taken it.
    result: Arc<Vec<Vec<u8>>>,
    generation: u64,
    /// Messages from rank i to rank j at `i * n_ranks + j`.
    mailboxes: Vec<VecDeque<Vec<u8>>>,
    a_rank_died: bool,
}

impl Group {
    fn new(n_ranks: usize) -> Arc<Group> {
        let state = State {
            deposits: vec![None; n_ranks],
            result: Arc::default(),
            generation: 0,
            mailboxes: vec![VecDeque::new(); n_ranks * n_ranks],
            a_rank_died: false,
        };
        Arc::new(Group {
            n_ranks,
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn wait_until(&self, mut ready: impl FnMut(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while !ready(&state) {
            assert!(!state.a_rank_died, "another rank of the group panicked");
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state
    }
}

impl ThreadRank {
    pub(super) fn alone() -> Self {
        ThreadRank {
            rank: 0,
            group: Group::new(1),
        }
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn n_ranks(&self) -> usize {
        self.group.n_ranks
    }

    pub(super) fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        if self.group.n_ranks == 1 {
            return vec![bytes.to_vec()];
        }
        let generation = {
            let mut state = self.group.lock();
            state.deposits[self.rank] = Some(bytes.to_vec());
            let generation = state.generation;
            if state.deposits.iter().all(Option::is_some) {
                state.result =
                    Arc::new(state.deposits.iter_mut().filter_map(Option::take).collect());
                state.generation += 1;
                self.group.changed.notify_all();
            }
            generation
        };
        let state = self.group.wait_until(|s| s.generation > generation);
        let result = Arc::clone(&state.result);
        drop(state);
        result.to_vec()
    }

    pub(super) fn broadcast(&self, root: usize, bytes: &[u8]) -> Vec<u8> {
        let mine = if self.rank == root { bytes } else { &[] };
        self.all_gather(mine).swap_remove(root)
    }

    pub(super) fn reduce(&self, values: &mut [f64], op: Reduction) {
        let parts = self.all_gather(bytemuck::cast_slice(values));
        for (rank, part) in parts.iter().enumerate() {
            let part: Vec<f64> = super::vec_from_bytes(part);
            for (value, other) in values.iter_mut().zip(part) {
                *value = match op {
                    _ if rank == 0 => other,
                    Reduction::Sum => *value + other,
                    Reduction::Max => value.max(other),
                    Reduction::Min => value.min(other),
                };
            }
        }
    }

    pub(super) fn send(&self, to: usize, bytes: Vec<u8>) {
        let mut state = self.group.lock();
        state.mailboxes[self.rank * self.group.n_ranks + to].push_back(bytes);
        self.group.changed.notify_all();
    }

    pub(super) fn receive(&self, from: usize) -> Vec<u8> {
        let mailbox = from * self.group.n_ranks + self.rank;
        let mut state = self.group.wait_until(|s| !s.mailboxes[mailbox].is_empty());
        state.mailboxes[mailbox].pop_front().unwrap_or_default()
    }
}

/// Marks the group as dead when its rank unwinds, so that the others do not wait for it.
struct DeathNotice(Arc<Group>);

impl Drop for DeathNotice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().a_rank_died = true;
            self.0.changed.notify_all();
        }
    }
}

/// Runs `body` on `n_ranks` threads that act as the ranks of one group, and returns when all have ended.
///
/// # Panics
/// If `body` panics on any rank.
pub fn run_threads(n_ranks: usize, body: impl Fn(&Comm) + Sync) {
    let group = Group::new(n_ranks);
    let body = &body;
    std::thread::scope(|scope| {
        for rank in 0..n_ranks {
            let group = Arc::clone(&group);
            scope.spawn(move || {
                let _notice = DeathNotice(Arc::clone(&group));
                body(&Comm::with(Backend::Threads(ThreadRank { rank, group })));
            });
        }
    });
}
