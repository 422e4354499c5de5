//! What the system tests share: running the binary, reading what it left.

use fem_mesh::{BoxMesh, CellType, Comm, LocalMesh, distribute_slices, generate_slice};
use fem_solve::element::Formulation;
use fem_solve::model::{Material, Model};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Longest a run may take before it counts as hung.
const TIMEOUT_SECONDS: &str = "300";

/// How a run ended.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
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
    pub(crate) fn error_lines(&self) -> Vec<&str> {
        self.stderr
            .lines()
            .filter(|l| l.starts_with("error: "))
            .collect()
    }

    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Run {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the solver crate has a parent folder")
        .to_path_buf()
}

/// Runs the binary without a launcher, in `directory`.
pub(crate) fn alone(directory: &Path, args: &[&str]) -> Run {
    let mut command = Command::new("timeout");
    command
        .args([TIMEOUT_SECONDS, env!("CARGO_BIN_EXE_fem-solve")])
        .args(args)
        .current_dir(directory);
    Run::of(command.output().expect("the binary starts"))
}

/// Runs the binary on `n` ranks, in `directory`; 0 is without a launcher.
pub(crate) fn on_ranks(n: usize, directory: &Path, args: &[&str]) -> Run {
    if n == 0 {
        return alone(directory, args);
    }
    let mut command = Command::new("timeout");
    command
        .args([
            TIMEOUT_SECONDS,
            "mpirun",
            "--oversubscribe",
            "-n",
            &n.to_string(),
        ])
        .arg(env!("CARGO_BIN_EXE_fem-solve"))
        .args(args)
        .current_dir(directory)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    Run::of(command.output().expect("mpirun starts"))
}

/// Rank counts a system test goes through: without a launcher (0) and, where MPI is compiled in, 1 to 4.
pub(crate) fn rank_counts() -> Vec<usize> {
    if cfg!(feature = "mpi") {
        vec![0, 1, 2, 3, 4]
    } else {
        vec![0]
    }
}

/// The summary that a run left in `results`.
pub(crate) fn summary(results: &Path) -> Value {
    let text =
        std::fs::read_to_string(results.join("summary.json")).expect("a run leaves summary.json");
    serde_json::from_str(&text).expect("summary.json is valid JSON")
}

/// Writes a case file into a directory and returns its path.
pub(crate) fn write_case(directory: &Path, text: &str) -> String {
    let path = directory.join("case.toml");
    std::fs::write(&path, text).expect("the test directory is writable");
    path.display().to_string()
}

/// A small clamped box under a tip load; `extra` is appended.
pub(crate) fn box_case(cells: [usize; 3], element: &str, extra: &str) -> String {
    format!(
        "title = \"box\"\n[mesh]\nbox = {{ size = [2.0, 1.0, 1.0], cells = {cells:?}, element = \"{element}\" }}\n\
         [analysis]\ntype = \"static\"\n[[material]]\nname = \"steel\"\nyoung = 200.0\npoisson = 0.3\n\
         [[constraint]]\non = \"xmin\"\ndisplacement = [0.0, 0.0, 0.0]\n\
         [[load]]\non = \"xmax\"\ntraction = [0.1, 0.0, -1.0]\n{extra}"
    )
}

/// Young's modulus of [`held_model`], Pa.
pub(crate) const YOUNG: f64 = 1e6;
/// Poisson's ratio of [`held_model`].
pub(crate) const POISSON: f64 = 0.25;

/// Collective. A unit cube of `n` bricks along each edge, cut into cells of the type, moved by `map`; nodes between
/// corners stay in the middle of their straight edge if `straight`.
fn mapped_box(
    comm: &Comm,
    cell_type: CellType,
    n: usize,
    straight: bool,
    map: impl Fn([f64; 3]) -> [f64; 3],
) -> LocalMesh {
    let spec = BoxMesh {
        size: [1.0; 3],
        cells: [n; 3],
        cell_type,
        origin: [0.0; 3],
    };
    let mut slice = generate_slice(&spec, comm, None).unwrap();
    slice.coords.iter_mut().for_each(|x| *x = map(*x));
    if straight && cell_type.order() == 2 {
        for cell in 0..slice.cells.len() {
            let nodes = slice.cells.nodes_of(cell).to_vec();
            for (k, edge) in cell_type.edges().iter().enumerate() {
                let [a, b] = edge.map(|i| slice.coords[nodes[usize::from(i)] as usize]);
                slice.coords[nodes[cell_type.n_corners() + k] as usize] =
                    [0, 1, 2].map(|i| 0.5 * (a[i] + b[i]));
            }
            let first_inner = cell_type.n_nodes() - cell_type.inner_nodes().len();
            for (&node, around) in nodes[first_inner..].iter().zip(cell_type.inner_nodes()) {
                let place = |k: &u8| slice.coords[nodes[usize::from(*k)] as usize];
                let mean = [0, 1, 2]
                    .map(|i| around.iter().map(|k| place(k)[i]).sum::<f64>() / around.len() as f64);
                slice.coords[node as usize] = mean;
            }
        }
    }
    distribute_slices(comm, slice, None).unwrap().0
}

/// Collective. A unit cube whose inner corner nodes are moved at random by up to `amount` of a brick's edge, with
/// straight edges.
pub(crate) fn jiggled_box(comm: &Comm, cell_type: CellType, n: usize, amount: f64) -> LocalMesh {
    let h = 1.0 / n as f64;
    mapped_box(comm, cell_type, n, true, |x| {
        if is_on_boundary(x) {
            return x;
        }
        // Any function of the position that looks random and is the same on every rank.
        [0, 1, 2].map(|i| {
            let seed = (12.9898 * x[0] + 78.233 * x[1] + 37.719 * x[2] + 4.1 * i as f64) / h;
            x[i] + 2.0 * amount * h * ((seed.sin() * 43_758.545).rem_euclid(1.0) - 0.5)
        })
    })
}

/// Collective. A unit cube distorted by a smooth map, the same for every `n`, with curved edges where the type allows.
pub(crate) fn smooth_box(comm: &Comm, cell_type: CellType, n: usize) -> LocalMesh {
    use std::f64::consts::PI;
    mapped_box(comm, cell_type, n, false, |x| {
        let bump = (PI * x[0]).sin() * (PI * x[1]).sin() * (PI * x[2]).sin();
        [x[0] + 0.06 * bump, x[1] - 0.05 * bump, x[2] + 0.04 * bump]
    })
}

fn is_on_boundary(x: [f64; 3]) -> bool {
    !x.iter().all(|v| (1e-12..=1.0 - 1e-12).contains(v))
}

/// A model of one material with no load, whose boundary nodes are held at `field`.
pub(crate) fn held_model(mesh: LocalMesh, field: impl Fn([f64; 3]) -> [f64; 3]) -> Model {
    let mut fixed = Vec::new();
    for (node, x) in mesh
        .coords
        .iter()
        .enumerate()
        .filter(|(_, x)| is_on_boundary(**x))
    {
        fixed.extend(
            field(*x)
                .into_iter()
                .enumerate()
                .map(|(c, u)| ((3 * node + c) as u32, u)),
        );
    }
    let material = Material::isotropic("m", YOUNG, POISSON, 0.0);
    let cell_material = vec![0; mesh.n_cells()];
    let cell_formulation = vec![Formulation::Full; mesh.n_cells()];
    Model {
        cell_formulation,
        mesh,
        materials: vec![material],
        cell_material,
        orientations: Vec::new(),
        cell_orientation: Vec::new(),
        temperatures: None,
        fixed,
        loads: Vec::new(),
        links: Default::default(),
    }
}
