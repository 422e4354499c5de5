//! Rules of the house that the compiler does not check: who may name which crate, where `unsafe` may stand, sizes.

use crate::common::root;
use std::path::{Path, PathBuf};

/// Largest file, lines.
const MAX_LINES: usize = 600;

fn rust_files() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in ["mesh/src", "io/src", "solver/src", "tests", "benches"] {
        collect(&root().join(folder), &mut found);
    }
    assert!(found.len() > 40, "only {} files found", found.len());
    found
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path.strip_prefix(root()).unwrap().to_path_buf(), text));
        }
    }
}

/// Code of a file without its comments.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|l| !l.trim_start().starts_with("//"))
}

/// Whether a file is compiled for tests only.
fn is_for_tests(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.starts_with("test")
        || name.starts_with("fixtures")
        || matches!(name.as_ref(), "real_files" | "sample" | "mutations")
}

/// Files whose code matches and that are not among those allowed.
fn offenders(matches: impl Fn(&str) -> bool, allowed: &[&str]) -> Vec<PathBuf> {
    let files = rust_files().into_iter();
    let offending = files.filter(|(path, text)| {
        !allowed.iter().any(|a| path.starts_with(a)) && code_lines(text).any(&matches)
    });
    offending.map(|(path, _)| path).collect()
}

#[test]
fn foreign_crates_are_named_in_their_places_only() {
    let named = |krate: &'static str| move |line: &str| line.contains(&format!("{krate}::"));
    let none: Vec<PathBuf> = Vec::new();
    assert_eq!(
        offenders(
            |l| l.contains("use mpi::") || l.contains("::mpi::"),
            &["mesh/src/comm", "tests"]
        ),
        none
    );
    // Results are written by HDF5; MED and netCDF-4 files are HDF5, read through one file, whose tests write such files.
    let hdf5 = [
        "io/src/results",
        "io/src/mesh_file/hdf.rs",
        "io/src/mesh_file/fixtures_binary.rs",
        "tests",
    ];
    assert_eq!(offenders(named("hdf5"), &hdf5), none);
    assert_eq!(
        offenders(
            named("clap"),
            &["solver/src/main.rs", "solver/src/cli", "tests"]
        ),
        none
    );
    assert_eq!(offenders(named("toml"), &["io/src", "tests"]), none);
    assert_eq!(
        offenders(
            |l| l.contains("use fem_io") || l.contains("use fem_solve"),
            &["solver", "tests", "benches"]
        ),
        none
    );
}

#[test]
fn linear_algebra_knows_no_mesh_and_no_case() {
    for folder in [
        "solver/src/linalg",
        "solver/src/krylov",
        "solver/src/precond",
        "solver/src/direct",
    ] {
        for (path, text) in rust_files()
            .iter()
            .filter(|(path, _)| path.starts_with(folder) && !is_for_tests(path))
        {
            // Tests may take their matrices from meshes.
            let text = text.split("#[cfg(test)]").next().unwrap_or("");
            for word in [
                "LocalMesh",
                "CellType",
                "fem_io",
                "crate::model",
                "crate::element",
            ] {
                assert!(
                    !code_lines(text).any(|l| l.contains(word)),
                    "{} names {word}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn unsafe_stands_where_it_may_and_says_why() {
    let is_unsafe =
        |l: &str| l.contains("unsafe {") || l.contains("unsafe fn") || l.contains("unsafe impl");
    let allowed = [
        "mesh/src/comm",
        "io/src/results",
        "solver/src/linalg",
        "solver/src/element",
        "solver/src/direct",
        "tests/tidy.rs",
    ];
    assert_eq!(offenders(is_unsafe, &allowed), Vec::<PathBuf>::new());
    for (path, text) in rust_files()
        .iter()
        .filter(|(path, _)| !path.starts_with("tests"))
    {
        let blocks = code_lines(text).filter(|l| l.contains("unsafe {")).count();
        let reasons = text.lines().filter(|l| l.contains("SAFETY:")).count();
        assert!(
            blocks == 0 || reasons > 0,
            "{}: {blocks} unsafe blocks without a SAFETY line",
            path.display()
        );
    }
}

#[test]
fn no_structure_stores_a_comm() {
    let stores = |l: &str| {
        let l = l.trim();
        l.ends_with(": Comm,")
            || l.ends_with(": &'a Comm,")
            || l.ends_with(": Rc<Comm>,")
            || l.ends_with(": Arc<Comm>,")
    };
    assert_eq!(offenders(stores, &["tests"]), Vec::<PathBuf>::new());
}

#[test]
fn files_are_short_documented_and_without_stubs() {
    for (path, text) in rust_files() {
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines", path.display());
        assert!(
            text.starts_with("//!"),
            "{} has no module documentation",
            path.display()
        );
        let is_library = path
            .components()
            .nth(1)
            .is_some_and(|c| c.as_os_str() == "src");
        if is_library && !is_for_tests(&path) && !path.ends_with("main.rs") {
            assert!(
                text.contains("Invariant:"),
                "{} states no invariant",
                path.display()
            );
        }
        if !path.ends_with("tidy.rs") {
            for stub in ["todo!", "unimplemented!", "FIXME", "XXX"] {
                assert!(!text.contains(stub), "{} contains {stub}", path.display());
            }
        }
    }
}

#[test]
fn no_path_of_a_developers_machine_is_committed() {
    for (path, text) in rust_files() {
        for word in ["/work/", "/home/", "/root/"] {
            assert!(
                path.ends_with("tidy.rs") || !text.contains(word),
                "{} names {word}",
                path.display()
            );
        }
    }
}
