//! Results as viewers see them: the `vtk` wheel and ParaView, where they are installed.

use crate::common::{box_case, on_ranks, rank_counts, root, write_case};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter with the `vtk` wheel that `scripts/setup.sh --test` makes, or a skip said aloud.
fn python() -> Option<PathBuf> {
    let python = root().join(".venv/bin/python");
    let found = python.exists();
    if !found {
        println!(
            "skipped: {} is not there; run scripts/setup.sh --test",
            python.display()
        );
    }
    found.then_some(python)
}

fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    let found = found.is_ok_and(|o| o.status.success());
    if !found {
        println!("skipped: {program} is not installed; run scripts/setup.sh --test");
    }
    found
}

/// Runs the checking script under `interpreter` and returns what it found.
fn look(interpreter: &Path, file: &Path, n_cells: usize, volume: &str) -> Value {
    let mut command = Command::new(interpreter);
    command
        .arg(root().join("scripts/check_vtkhdf.py"))
        .arg(file);
    command.args(["--cells", &n_cells.to_string(), "--volume", volume]);
    for field in [
        "displacement:3",
        "reaction:3",
        "stress:6",
        "von_mises:1",
        "material:1",
        "rank:1",
        "element_id:1",
    ] {
        command.args(["--require", field]);
    }
    let output = command.output().expect("the interpreter starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}:\n{stdout}\n{stderr}",
        file.display()
    );
    let start = stdout.find('{').expect("the script prints JSON");
    serde_json::from_str(&stdout[start..]).expect("the script prints JSON")
}

#[test]
fn the_newest_vtk_reads_results_of_every_element_and_number_of_ranks() {
    let Some(python) = python() else { return };
    for (element, n_cells) in [
        ("hex8", 12),
        ("hex20", 12),
        ("tet4", 72),
        ("tet10", 72),
        ("wedge6", 24),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let case = write_case(folder.path(), &box_case([3, 2, 2], element, ""));
        for n in rank_counts() {
            on_ranks(n, folder.path(), &[&case]).expect_code(0);
            look(
                &python,
                &folder.path().join("results/results.vtkhdf"),
                n_cells,
                "2.0",
            );
        }
    }
}

#[test]
fn paraview_opens_the_series_and_renders_it() {
    if !has("pvpython") || !has("xvfb-run") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &box_case([6, 3, 3], "tet10", ""));
    let ranks = if cfg!(feature = "mpi") { 3 } else { 0 };
    on_ranks(ranks, folder.path(), &[&case]).expect_code(0);
    let results = folder.path().join("results");
    // A moved folder still opens: the files name each other without their directory.
    let moved = folder.path().join("moved");
    std::fs::rename(&results, &moved).unwrap();
    look(
        Path::new("pvpython"),
        &moved.join("results.hdf.series"),
        324,
        "2.0",
    );

    let picture = folder.path().join("picture.png");
    let output = Command::new("xvfb-run")
        .args([
            "-a",
            "-s",
            "-screen 0 1280x1024x24 -noreset",
            "pvbatch",
            "--force-offscreen-rendering",
        ])
        .arg(root().join("scripts/render.py"))
        .arg(moved.join("results.hdf.series"))
        .arg(&picture)
        .output()
        .expect("xvfb-run starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let bytes = std::fs::read(&picture).expect("a picture was written");
    assert!(
        bytes.starts_with(b"\x89PNG") && bytes.len() > 10_000,
        "{} bytes",
        bytes.len()
    );
}
