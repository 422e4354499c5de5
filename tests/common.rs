//! What the system tests share: running the binary, reading what it left.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Longest a run may take before it counts as hung.
const TIMEOUT_SECONDS: &str = "300";

/// How a run ended.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    fn of(output: Output) -> Run {
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The lines that fem-solve itself wrote as errors.
    pub fn error_lines(&self) -> Vec<&str> {
        self.stderr.lines().filter(|l| l.starts_with("error: ")).collect()
    }

    #[track_caller]
    pub fn expect_code(self, code: i32) -> Run {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the solver crate has a parent folder").to_path_buf()
}

/// Runs the binary without a launcher, in `directory`.
pub fn alone(directory: &Path, args: &[&str]) -> Run {
    let mut command = Command::new("timeout");
    command.args([TIMEOUT_SECONDS, env!("CARGO_BIN_EXE_fem-solve")]).args(args).current_dir(directory);
    Run::of(command.output().expect("the binary starts"))
}

/// Runs the binary on `n` ranks, in `directory`; 0 is without a launcher.
pub fn on_ranks(n: usize, directory: &Path, args: &[&str]) -> Run {
    if n == 0 {
        return alone(directory, args);
    }
    let mut command = Command::new("timeout");
    command
        .args([TIMEOUT_SECONDS, "mpirun", "--oversubscribe", "-n", &n.to_string()])
        .arg(env!("CARGO_BIN_EXE_fem-solve"))
        .args(args)
        .current_dir(directory)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    Run::of(command.output().expect("mpirun starts"))
}

/// Rank counts a system test goes through: without a launcher (0) and, where MPI is compiled in, 1 to 4.
pub fn rank_counts() -> Vec<usize> {
    if cfg!(feature = "mpi") { vec![0, 1, 2, 3, 4] } else { vec![0] }
}

/// The summary that a run left in `results`.
pub fn summary(results: &Path) -> Value {
    let text = std::fs::read_to_string(results.join("summary.json")).expect("a run leaves summary.json");
    serde_json::from_str(&text).expect("summary.json is valid JSON")
}

/// Writes a case file into a directory and returns its path.
pub fn write_case(directory: &Path, text: &str) -> String {
    let path = directory.join("case.toml");
    std::fs::write(&path, text).expect("the test directory is writable");
    path.display().to_string()
}

/// A small clamped box under a tip load; `extra` is appended.
pub fn box_case(cells: [usize; 3], element: &str, extra: &str) -> String {
    format!(
        "title = \"box\"\n[mesh]\nbox = {{ size = [2.0, 1.0, 1.0], cells = {cells:?}, element = \"{element}\" }}\n\
         [analysis]\ntype = \"static\"\n[[material]]\nname = \"steel\"\nyoung = 200.0\npoisson = 0.3\n\
         [[constraint]]\non = \"xmin\"\ndisplacement = [0.0, 0.0, 0.0]\n\
         [[load]]\non = \"xmax\"\ntraction = [0.1, 0.0, -1.0]\n{extra}"
    )
}
