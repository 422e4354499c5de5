//! `fem-solve verify`: runs cases and holds each against its `[[check]]` entries.
//!
//! Invariant: compares nothing itself; the pass or fail of a check is the run's.

use super::args::VerifyArgs;
use super::{gallery, print, request, table};
use fem_io::summary::Summary;
use fem_mesh::{Comm, Error, Result};
use fem_solve::log::{Log, tell};
use fem_solve::{parallel, run};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Collective. Exit code 0 if every check of every case passes, else 1.
pub(crate) fn verify(comm: &Comm, args: &VerifyArgs) -> Result<i32> {
    let start = Instant::now();
    let scratch = Scratch::new(comm)?;
    let found = comm.all_ok(find_cases(comm, args, &scratch.0));
    let cases = match found {
        Ok(cases) => cases,
        Err(error) => {
            scratch.remove(comm);
            return Err(error);
        }
    };
    // One pool serves all cases: it is started for the largest model.
    let ceiling = args.common.threads.map(|n| n as usize);
    let threads = parallel::decide(comm, u64::MAX, ceiling).threads;
    comm.all_ok(parallel::start_threads(threads))?;
    // Lines on stdout tell how far it is, unless they go elsewhere.
    let shows_progress = comm.is_root() && !args.common.quiet && !std::io::stdout().is_terminal();
    let width = cases.iter().map(|c| name_of(c).chars().count()).max();
    let mut tally = Tally::default();
    for (index, case) in cases.iter().enumerate() {
        if shows_progress {
            tell(&format!(
                "[{}/{}] {}",
                index + 1,
                cases.len(),
                case.display()
            ));
        }
        let output = scratch.0.join(format!("results-{index}"));
        let case_start = Instant::now();
        let mut log = Log::new(false);
        let outcome = run::run(comm, &request(case, Some(output), &args.common), &mut log);
        let verdict = tally.add(&outcome);
        print(comm, || {
            let name = format!("{:w$}", name_of(case), w = width.unwrap_or(0));
            let seconds = case_start.elapsed().as_secs_f64();
            let mut lines = vec![format!("{name}  {verdict}  {seconds:7.1} s")];
            lines.extend(details(&outcome, args.verbose));
            lines.join("\n")
        })?;
    }
    let seconds = start.elapsed().as_secs_f64();
    print(comm, || format!("\n{}, {seconds:.1} s", tally.text()))?;
    scratch.remove(comm);
    Ok(i32::from(tally.has_failures()))
}

/// A folder for results that nobody keeps.
struct Scratch(PathBuf);

impl Scratch {
    /// Collective. The same folder on every rank.
    fn new(comm: &Comm) -> Result<Scratch> {
        let name = format!("fem-solve-verify-{}", std::process::id());
        let path = std::env::temp_dir().join(name).display().to_string();
        let path = PathBuf::from(comm.broadcast_text(path));
        let made = if comm.is_root() {
            std::fs::create_dir_all(&path)
        } else {
            Ok(())
        };
        comm.all_ok(
            made.map_err(|e| Error::machine(format!("cannot make {}: {e}", path.display()))),
        )?;
        Ok(Scratch(path))
    }

    /// Collective. Removes the folder; what cannot be removed is left to the system's cleaning of its temporary files.
    fn remove(self, comm: &Comm) {
        comm.barrier();
        if comm.is_root() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Collective. The case files meant: those named, those in directories named, or the prebuilt ones.
fn find_cases(comm: &Comm, args: &VerifyArgs, scratch: &Path) -> Result<Vec<PathBuf>> {
    let found = if comm.is_root() {
        list_cases(args, scratch).map(|list| {
            let names: Vec<String> = list.iter().map(|p| p.display().to_string()).collect();
            names.join("\n")
        })
    } else {
        Ok(String::new())
    };
    let text = comm.broadcast_text(comm.all_ok(found)?);
    Ok(text.lines().map(PathBuf::from).collect())
}

fn list_cases(args: &VerifyArgs, scratch: &Path) -> Result<Vec<PathBuf>> {
    if args.targets.is_empty() {
        let folder = scratch.join("cases");
        gallery::extract_all(&folder)?;
        return cases_in(&folder);
    }
    let mut cases = Vec::new();
    for target in &args.targets {
        if target.is_dir() {
            let own = target.join("case.toml");
            cases.extend(if own.is_file() {
                vec![own]
            } else {
                cases_in(target)?
            });
        } else if target.exists() {
            cases.push(target.clone());
        } else {
            return Err(Error::input("no such file or directory")
                .in_file(target)
                .expected("a case file, or a directory with cases"));
        }
    }
    Ok(cases)
}

/// The case.toml of each folder in `directory`, in alphabetical order.
fn cases_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)
        .map_err(|e| Error::input(format!("cannot read the directory: {e}")).in_file(directory))?;
    let mut cases: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path().join("case.toml")))
        .filter(|p| p.is_file())
        .collect();
    if cases.is_empty() {
        return Err(Error::input("no case in this directory")
            .in_file(directory)
            .expected("folders with a case.toml"));
    }
    cases.sort();
    Ok(cases)
}

/// The folder of a case file, by which users know it.
fn name_of(case: &Path) -> String {
    case.parent()
        .and_then(Path::file_name)
        .unwrap_or(case.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// What came out of all cases so far.
#[derive(Default)]
struct Tally {
    cases: usize,
    checks: usize,
    failed: usize,
    not_run: usize,
    without_check: usize,
}

impl Tally {
    /// Counts a case and returns its verdict.
    fn add(&mut self, outcome: &Result<Summary>) -> String {
        self.cases += 1;
        let Ok(summary) = outcome else {
            self.not_run += 1;
            return "FAILED  did not run".to_owned();
        };
        let n = summary.checks.len();
        let failed = summary.checks.iter().filter(|c| !c.pass).count();
        self.checks += n;
        self.failed += failed;
        self.without_check += usize::from(n == 0);
        let verdict = match (n, failed) {
            (0, _) => "no check",
            (_, 0) => "pass",
            _ => "FAIL",
        };
        let checks = if n == 1 { "check" } else { "checks" };
        format!("{verdict:8}{n:>3} {checks:6}")
    }

    fn has_failures(&self) -> bool {
        self.failed + self.not_run > 0
    }

    fn text(&self) -> String {
        let cases = |n: usize| if n == 1 { "case" } else { "cases" };
        let mut text = format!(
            "{} checks in {} {}, {} failed",
            self.checks,
            self.cases,
            cases(self.cases),
            self.failed
        );
        for (n, what) in [
            (self.not_run, "did not run"),
            (self.without_check, "without a check"),
        ] {
            if n > 0 {
                text += &format!(", {n} {} {what}", cases(n));
            }
        }
        text
    }
}

/// The lines below that of a case: its checks (all of them if `verbose`, else those that fail), or why it did not run.
fn details(outcome: &Result<Summary>, verbose: bool) -> Vec<String> {
    let summary = match outcome {
        Ok(summary) => summary,
        Err(error) => return vec![format!("    {error}")],
    };
    let shown = summary.checks.iter().filter(|c| verbose || !c.pass);
    let rows: Vec<(String, String)> = shown.map(|c| table::check_row(summary, c)).collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).max();
    rows.iter()
        .map(|(name, text)| format!("    {name:w$}  {text}", w = width.unwrap_or(0)))
        .collect()
}
