//! The iterations of conjugate gradients from one start to its end, in the plain and in the merged form.
//!
//! The residual is checked where it may be near the aim, by a reduction of its own; elsewhere its norm travels with the
//! sums of the next iteration.
//!
//! Invariant: every rank ends in the same iteration for the same reason, since all decisions rest on reduced numbers.

use super::cg::{Cg, Progress};
use crate::linalg::vector::{self, StepVectors};
use fem_mesh::{Comm, Error, Result};
use std::ops::ControlFlow;

/// A residual that would fall below this multiple of the aim if it went on as in the last iteration is checked at once.
const NEAR_AIM: f64 = 100.0;
/// A residual counts as fallen when it is below this part of the lowest one before.
const FALLEN: f64 = 0.9;
/// A scalar product p.A p below minus this part of ‖A‖ p.p is no matter of rounding.
const CLEARLY_NEGATIVE: f64 = 1e-10;
/// The merged form gives up where p.A p comes out below this part of the numbers it is the difference of.
const CANCELED: f64 = 1e-8;

/// Why iterations ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum End {
    /// The residual carried along is down to the aim.
    Reached,
    /// No more iterations are allowed.
    OutOfIterations,
    /// The residual has not fallen for many iterations.
    Stagnated,
    /// r.M⁻¹ r is not positive.
    PreconditionerFailed,
    /// p.A p is not positive, by rounding.
    MatrixFailed,
}

/// This rank's part of r.r, if it has not been reduced yet.
type Pending = Option<f64>;

impl Cg<'_> {
    /// Collective. Iterates from the residual in `r`, of relative norm `residual`, until the one carried along is down
    /// to `aim` or no progress is made.
    pub(super) fn run_plain(
        &mut self,
        comm: &Comm,
        x: &mut [f64],
        residual: f64,
        aim: f64,
        progress: &mut Progress,
    ) -> Result<End> {
        let mut watch = Watch::new(self.iterations, residual, aim);
        self.p.fill(0.0);
        self.q.fill(0.0);
        let mut pending: Pending = None;
        // The step along p that x is behind by; scalar products of the iteration before.
        let (mut alpha, mut rz_before, mut pq) = (0.0, f64::INFINITY, 1.0);
        let end = loop {
            let norm = watch.residual * self.norm_b;
            let q = if self.options.flexible {
                &self.q
            } else {
                &self.r
            };
            let [rz, qz] =
                (self.system.preconditioner).precondition(comm, &self.r, norm, q, &mut self.z);
            let mut sums = [pending.unwrap_or(0.0), rz, qz];
            comm.sum_into(&mut sums);
            let [rr, rz, qz] = sums;
            if pending.is_some()
                && let Some(end) = self.follow(rr, &mut watch, progress)?
            {
                break end;
            }
            if !is_positive(rz) {
                break End::PreconditionerFailed;
            }
            let beta = if self.options.flexible {
                -qz / pq
            } else {
                rz / rz_before
            };
            vector::advance(alpha, x, beta, &self.z, &mut self.p);
            alpha = 0.0;
            pq = comm.sum(self.system.matrix.apply_dot(comm, &self.p, &mut self.q));
            if !self.is_definite(comm, pq)? {
                break End::MatrixFailed;
            }
            alpha = rz / pq;
            rz_before = rz;
            let rr = vector::descend(alpha, &self.q, &mut self.r);
            match self.after_step(comm, rr, &mut watch, progress)? {
                ControlFlow::Break(end) => break end,
                ControlFlow::Continue(rr) => pending = rr,
            }
        };
        vector::axpby(alpha, &self.p, 1.0, x);
        Ok(end)
    }

    /// Collective. As [`Cg::run_plain`], with one reduction an iteration: Chronopoulos and Gear, J. Comput. Appl. Math.
    /// 25 (1989) 153. The search direction is made conjugate to the one before by its own scalar product, q.z, as in the
    /// flexible variant, and p.A p follows from sums at hand: z.A z - (q.z)² / (p.A p before).
    pub(super) fn run_merged(
        &mut self,
        comm: &Comm,
        x: &mut [f64],
        residual: f64,
        aim: f64,
        progress: &mut Progress,
    ) -> Result<End> {
        let mut watch = Watch::new(self.iterations, residual, aim);
        self.p.fill(0.0);
        self.q.fill(0.0);
        self.w.resize(self.p.len(), 0.0);
        let mut pending: Pending = None;
        let mut pq_before = 1.0;
        loop {
            let norm = watch.residual * self.norm_b;
            let [rz, qz] = (self.system.preconditioner).precondition(
                comm,
                &self.r,
                norm,
                &self.q,
                &mut self.z,
            );
            let zw = self.system.matrix.apply_dot(comm, &self.z, &mut self.w);
            let mut sums = [pending.unwrap_or(0.0), rz, qz, zw];
            comm.sum_into(&mut sums);
            let [rr, rz, qz, zw] = sums;
            if pending.is_some()
                && let Some(end) = self.follow(rr, &mut watch, progress)?
            {
                return Ok(end);
            }
            if !is_positive(rz) {
                return Ok(End::PreconditionerFailed);
            }
            self.finite(zw, "product of matrix and vector")?;
            let pq = zw - qz * qz / pq_before;
            if pq <= CANCELED * zw.abs() {
                return Ok(End::MatrixFailed);
            }
            let (alpha, beta) = (rz / pq, -qz / pq_before);
            pq_before = pq;
            let step = StepVectors {
                p: &mut self.p,
                q: &mut self.q,
                x,
                r: &mut self.r,
            };
            let rr = vector::merged_step(beta, &self.z, &self.w, alpha, step);
            match self.after_step(comm, rr, &mut watch, progress)? {
                ControlFlow::Break(end) => return Ok(end),
                ControlFlow::Continue(rr) => pending = rr,
            }
        }
    }

    /// Collective. Counts an iteration that left this rank's part `rr` of r.r, and follows it up at once where the end
    /// may be near. The end, if it is one, or what is still to be reduced.
    fn after_step(
        &mut self,
        comm: &Comm,
        rr: f64,
        watch: &mut Watch,
        progress: &mut Progress,
    ) -> Result<ControlFlow<End, Pending>> {
        self.iterations += 1;
        let is_last = self.iterations >= self.options.max_iterations;
        if !is_last && !watch.may_be_near() {
            return Ok(ControlFlow::Continue(Some(rr)));
        }
        let end = self.follow(comm.sum(rr), watch, progress)?;
        let end = end.or(is_last.then_some(End::OutOfIterations));
        Ok(end.map_or(ControlFlow::Continue(None), ControlFlow::Break))
    }

    /// Records the residual whose square is `rr`; the end, if it is one.
    fn follow(
        &mut self,
        rr: f64,
        watch: &mut Watch,
        progress: &mut Progress,
    ) -> Result<Option<End>> {
        let residual = self.finite(rr.sqrt() / self.norm_b, "residual")?;
        self.record(residual, progress);
        Ok(watch.enter(self.iterations, residual, self.options.window))
    }

    /// Collective. Whether p.A p is positive.
    ///
    /// # Errors
    /// A product that is not finite, or so far below zero that rounding is no excuse.
    fn is_definite(&self, comm: &Comm, pq: f64) -> Result<bool> {
        self.finite(pq, "product of matrix and vector")?;
        if pq > 0.0 {
            return Ok(true);
        }
        let pp = vector::dot(comm, &self.p, &self.p);
        if pq < -CLEARLY_NEGATIVE * self.options.matrix_norm * pp {
            return Err(not_definite("matrix", self.iterations));
        }
        Ok(false)
    }
}

fn is_positive(product: f64) -> bool {
    product > 0.0 && product.is_finite()
}

/// That an operator is not positive definite.
pub(super) fn not_definite(name: &str, iteration: usize) -> Error {
    let what = format!(
        "the {name} is not positive definite: found in iteration {iteration} of the conjugate gradients"
    );
    Error::model(what).advice("is the model restrained, and are all material data positive?")
}

/// The residual on its way down.
struct Watch {
    aim: f64,
    /// The last residual known, and the one before it.
    residual: f64,
    before: f64,
    /// Lowest residual so far, and the iteration that brought it.
    lowest: f64,
    lowest_at: usize,
}

impl Watch {
    fn new(iteration: usize, residual: f64, aim: f64) -> Self {
        Watch {
            aim,
            residual,
            before: residual,
            lowest: residual,
            lowest_at: iteration,
        }
    }

    /// Whether the next residual may be the last.
    fn may_be_near(&self) -> bool {
        let rate = (self.residual / self.before).min(1.0);
        self.residual * rate <= NEAR_AIM * self.aim
    }

    fn enter(&mut self, iteration: usize, residual: f64, window: usize) -> Option<End> {
        (self.before, self.residual) = (self.residual, residual);
        if residual <= self.aim {
            return Some(End::Reached);
        }
        if residual < FALLEN * self.lowest {
            (self.lowest, self.lowest_at) = (residual, iteration);
        }
        (iteration - self.lowest_at >= window).then_some(End::Stagnated)
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Watch};

    #[test]
    fn a_residual_that_does_not_fall_over_the_window_has_stagnated() {
        let mut watch = Watch::new(10, 1.0, 1e-8);
        assert_eq!(watch.enter(11, 5.0, 4), None);
        assert_eq!(watch.enter(12, 0.5, 4), None);
        for (iteration, residual) in [(13, 0.6), (14, 0.49), (15, 0.46)] {
            assert_eq!(watch.enter(iteration, residual, 4), None);
        }
        assert_eq!(watch.enter(16, 0.46, 4), Some(End::Stagnated));
        assert_eq!(watch.enter(17, 1e-9, 4), Some(End::Reached));
    }

    #[test]
    fn the_end_is_looked_for_where_it_may_be() {
        let mut watch = Watch::new(0, 1.0, 1e-8);
        assert!(!watch.may_be_near());
        for (iteration, residual, near) in [(1, 1e-1, false), (2, 2e-2, false), (3, 1e-4, true)] {
            watch.enter(iteration, residual, 100);
            assert_eq!(watch.may_be_near(), near, "{residual}");
        }
        // A residual that rises is not expected to go on rising.
        watch.enter(4, 2e-4, 100);
        assert!(!watch.may_be_near());
        watch.enter(5, 1e-6, 100);
        assert!(watch.may_be_near());
    }
}
