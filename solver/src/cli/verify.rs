//! `fem-solve verify`: runs cases and holds each against its `[[check]]` entries.
//!
//! Invariant: compares nothing itself; the pass or fail of a check is the run's.

use super::args::VerifyArgs;
use super::{gallery, print, request};
use fem_io::summary::Summary;
use fem_mesh::{Comm, Error, Result};
use fem_solve::log::Log;
use fem_solve::{parallel, run};
use std::path::{Path, PathBuf};

/// Collective. Exit code 0 if every check of every case passes, else 1.
pub(crate) fn verify(comm: &Comm, args: &VerifyArgs) -> Result<i32> {
    let scratch = Scratch::new(comm)?;
    let cases = comm.all_ok(find_cases(comm, args, &scratch.0))?;
    // One pool serves all cases: it is started for the largest model.
    let ceiling = args.common.threads.map(|n| n as usize);
    parallel::start_threads(parallel::decide(comm, u64::MAX, ceiling).threads)?;
    let mut rows = Vec::new();
    let mut all_passed = true;
    for (index, case) in cases.iter().enumerate() {
        let mut log = Log::new(false);
        if comm.is_root() && !args.common.quiet {
            eprintln!("[{}/{}] {}", index + 1, cases.len(), case.display());
        }
        let output = scratch.0.join(format!("results-{index}"));
        let outcome = run::run(comm, &request(case, Some(output), &args.common), &mut log);
        all_passed &= rows_of(case, outcome, &mut rows);
    }
    if comm.is_root() {
        print(&format_rows(&rows));
    }
    scratch.remove(comm);
    Ok(i32::from(!all_passed))
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
        } else {
            cases.push(target.clone());
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

struct Row {
    case: String,
    check: String,
    value: String,
    expected: String,
    error: String,
    verdict: &'static str,
}

/// Adds the rows of one case; whether all its checks passed.
fn rows_of(case: &Path, outcome: Result<Summary>, rows: &mut Vec<Row>) -> bool {
    let name = case
        .parent()
        .and_then(Path::file_name)
        .unwrap_or(case.as_os_str())
        .to_string_lossy()
        .into_owned();
    let plain = |check: String, verdict| Row {
        case: name.clone(),
        check,
        value: String::new(),
        expected: String::new(),
        error: String::new(),
        verdict,
    };
    match outcome {
        Err(error) => {
            rows.push(plain(error.to_string(), "FAILED"));
            false
        }
        Ok(summary) if summary.checks.is_empty() => {
            rows.push(plain("the case has no [[check]]".to_owned(), "no check"));
            true
        }
        Ok(summary) => {
            rows.extend(summary.checks.iter().map(|check| Row {
                case: name.clone(),
                check: match check.component {
                    Some(c) => format!("{}[{c}]", check.probe),
                    None => check.probe.clone(),
                },
                value: format!("{:.6e}", check.value),
                expected: format!("{:.6e}", check.expected),
                error: format!("{:.1e} of {:.1e}", check.error, check.tolerance),
                verdict: if check.pass { "pass" } else { "FAIL" },
            }));
            summary.checks.iter().all(|c| c.pass)
        }
    }
}

fn format_rows(rows: &[Row]) -> String {
    let width = |f: fn(&Row) -> &String| rows.iter().map(|r| f(r).len()).max().unwrap_or(0);
    let (case_width, check_width) = (width(|r| &r.case).max(4), width(|r| &r.check).clamp(5, 60));
    let mut text = format!(
        "{:case_width$}  {:check_width$}  {:>13}  {:>13}  {:>18}  verdict\n",
        "case", "check", "value", "expected", "error"
    );
    for r in rows {
        text += &format!(
            "{:case_width$}  {:check_width$}  {:>13}  {:>13}  {:>18}  {}\n",
            r.case, r.check, r.value, r.expected, r.error, r.verdict
        );
    }
    let failed = rows
        .iter()
        .filter(|r| r.verdict.starts_with("FAIL"))
        .count();
    text + &format!("\n{} checks, {failed} failed", rows.len())
}
