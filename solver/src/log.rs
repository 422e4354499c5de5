//! What the user sees while the program runs: phases with their times, a bar for the solver, notes and warnings.
//!
//! Everything goes to stderr, from rank 0 only: bars on a terminal, plain lines otherwise; when quiet, only warnings
//! and remarks about files.
//! Also measures: seconds of each phase, peak memory of this process.
//!
//! Invariant: knows no model; never communicates.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Seconds between two lines of progress where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Writes a line to stderr. A full disk or a closed pipe behind it does not end a run.
pub fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Log of one rank.
pub struct Log {
    /// Whether warnings are shown.
    warns: bool,
    /// Whether progress is shown.
    speaks: bool,
    terminal: bool,
    start: Instant,
    phases: Vec<(&'static str, f64)>,
    warnings: Vec<String>,
}

impl Log {
    /// `speaks`: whether this rank writes to stderr.
    pub fn new(speaks: bool) -> Self {
        Log::with_progress(speaks, speaks)
    }

    /// `warns`: whether this rank shows warnings; `speaks`: whether it shows progress.
    pub fn with_progress(warns: bool, speaks: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Log {
            warns,
            speaks,
            terminal,
            start: Instant::now(),
            phases: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A line of information.
    pub fn note(&self, text: &str) {
        if self.speaks {
            tell(text);
        }
    }

    /// A line that is shown though progress is not.
    pub fn remark(&self, text: &str) {
        if self.warns {
            tell(&format!("note: {text}"));
        }
    }

    /// A warning: shown whether progress is shown or not, and kept for the summary.
    pub fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.warns {
            tell(&format!("warning: {text}"));
        }
        self.warnings.push(text);
    }

    /// Warnings so far.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Runs one phase and adds its wall time to the phase's total.
    pub fn phase<T>(
        &mut self,
        name: &'static str,
        label: &str,
        work: impl FnOnce(&mut Log) -> T,
    ) -> T {
        let spinner = (self.speaks && self.terminal).then(|| spinner(label));
        let begin = Instant::now();
        let result = work(self);
        let seconds = begin.elapsed().as_secs_f64();
        if let Some(spinner) = spinner {
            spinner.finish_and_clear();
        }
        if self.speaks {
            tell(&format!(
                "[{:8.2} s] {label}: {seconds:.3} s",
                self.start.elapsed().as_secs_f64()
            ));
        }
        match self.phases.iter_mut().find(|(n, _)| *n == name) {
            Some((_, total)) => *total += seconds,
            None => self.phases.push((name, seconds)),
        }
        result
    }

    /// Seconds spent in the phase of that name.
    pub fn seconds(&self, name: &str) -> f64 {
        self.phases
            .iter()
            .find(|(n, _)| *n == name)
            .map_or(0.0, |(_, s)| *s)
    }

    /// Seconds since the log was made.
    pub fn total_seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// A display of the residual of an iterative solver on its way to `tolerance`.
    pub fn residual_display(&self, tolerance: f64) -> ResidualDisplay {
        let bar = (self.speaks && self.terminal).then(|| {
            let style = ProgressStyle::with_template(
                "  solve [{bar:40}] {msg} {elapsed} (about {eta} left)",
            );
            ProgressBar::new(1000)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let lines = self.speaks && !self.terminal;
        ResidualDisplay {
            bar,
            lines,
            tolerance,
            last_line: Instant::now(),
        }
    }
}

fn spinner(label: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(label.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(120));
    spinner
}

/// Bar (terminal) or occasional lines (elsewhere) that follow a residual.
pub struct ResidualDisplay {
    bar: Option<ProgressBar>,
    lines: bool,
    tolerance: f64,
    last_line: Instant,
}

impl ResidualDisplay {
    /// Shows the relative residual after an iteration.
    pub fn update(&mut self, iteration: usize, residual: f64) {
        if let Some(bar) = &self.bar {
            // The residual falls about linearly in its logarithm: that is the share of the way done.
            let done = (residual.ln() / self.tolerance.ln()).clamp(0.0, 1.0);
            bar.set_position((1000.0 * done) as u64);
            bar.set_message(format!(
                "iteration {iteration}, relative residual {residual:.2e} (target {:.0e})",
                self.tolerance
            ));
        } else if self.lines && self.last_line.elapsed() >= LINE_INTERVAL {
            self.last_line = Instant::now();
            tell(&format!(
                "  solve: iteration {iteration}, relative residual {residual:.2e} (target {:.0e})",
                self.tolerance
            ));
        }
    }
}

impl Drop for ResidualDisplay {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Peak resident memory of this process so far, MiB; 0 where the system does not say.
pub fn peak_memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .unwrap_or("");
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<f64>()
        .map_or(0.0, |kib| kib / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::{Log, peak_memory_mib};

    #[test]
    fn times_of_a_phase_add_up() {
        let mut log = Log::new(false);
        for _ in 0..2 {
            log.phase("solve", "solve", |_| {
                std::thread::sleep(std::time::Duration::from_millis(5))
            });
        }
        assert!(log.seconds("solve") >= 0.01);
        assert_eq!(log.seconds("write"), 0.0);
        assert!(log.total_seconds() >= log.seconds("solve"));
    }

    #[test]
    fn warnings_are_kept_whether_shown_or_not() {
        let mut log = Log::with_progress(false, false);
        log.warn("flat elements");
        assert_eq!(log.warnings(), ["flat elements"]);
    }

    #[test]
    fn memory_is_measured() {
        assert!(peak_memory_mib() > 0.5);
    }
}
