//! The prebuilt benchmark cases, built into the program: list them, write one out.
//!
//! Invariant: serial; knows nothing of how a case is solved.

use fem_mesh::{Error, Result};
use include_dir::{Dir, include_dir};
use std::path::Path;

static CASES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../cases");

/// Names of the prebuilt cases, in alphabetical order.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = case_directories()
        .map(|d| d.path().display().to_string())
        .collect();
    names.sort();
    names
}

fn case_directories() -> impl Iterator<Item = &'static Dir<'static>> {
    CASES
        .dirs()
        .filter(|d| d.get_file(d.path().join("case.toml")).is_some())
}

/// A table of the cases and their titles.
pub(crate) fn list() -> Result<String> {
    let width = names().iter().map(String::len).max().unwrap_or(0);
    let lines: Vec<String> = names()
        .iter()
        .map(|name| format!("{name:width$}  {}", title_of(name)))
        .collect();
    Ok(format!(
        "{}\n\nfem-solve cases copy NAME DIR writes one into a directory.",
        lines.join("\n")
    ))
}

fn title_of(name: &str) -> String {
    let text = CASES
        .get_file(format!("{name}/case.toml"))
        .and_then(|f| f.contents_utf8())
        .unwrap_or("");
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix("title"))
        .unwrap_or("");
    line.trim_start_matches([' ', '='])
        .trim()
        .trim_matches('"')
        .to_owned()
}

/// Writes all files of the case `name` into `directory`; files of these names that are there already are an error.
pub(crate) fn copy(name: &str, directory: &Path) -> Result<String> {
    let case = case_directories()
        .find(|d| d.path() == Path::new(name))
        .ok_or_else(|| {
            Error::input(format!("there is no prebuilt case `{name}`"))
                .expected(format!("one of {}", names().join(", ")))
                .advice("`fem-solve cases list` shows them with their titles")
        })?;
    let failed = |what: &str, path: &Path, e: std::io::Error| {
        Error::machine(format!("cannot {what} {}: {e}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|e| failed("make the directory", directory, e))?;
    let mut written = Vec::new();
    for file in case.files() {
        let target = directory.join(file.path().file_name().unwrap_or_default());
        if target.exists() {
            let what = format!("{} exists already and is not overwritten", target.display());
            return Err(Error::input(what).advice("name another directory"));
        }
        std::fs::write(&target, file.contents()).map_err(|e| failed("write", &target, e))?;
        written.push(target.display().to_string());
    }
    let run = directory.join("case.toml");
    Ok(format!(
        "{}\n\nTo run it: fem-solve {}",
        written.join("\n"),
        run.display()
    ))
}

/// Writes every prebuilt case below `directory`, a folder each.
pub(crate) fn extract_all(directory: &Path) -> Result<()> {
    names()
        .iter()
        .try_for_each(|name| copy(name, &directory.join(name)).map(|_| ()))
}
