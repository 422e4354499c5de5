//! How long the set-up of multigrid takes, step by step, and what memory it leaves.
//!
//! The unit cube of N^3 trilinear hexahedra, held at x = 0. The system is made once; each figure is the best of the rounds
//! of a step, in milliseconds, so that what disturbs the machine now and then does not show.
//!
//! Run: `cargo bench -p fem-solve --bench setup [-- ROUNDS [N [THREADS]]]`

use fem_mesh::distribute::distribute_slices;
use fem_mesh::generate::{BoxMesh, generate_slice};
use fem_mesh::{CellType, Comm, Error, Result};
use fem_solve::assembly::{Pattern, assemble_stiffness, constrain};
use fem_solve::element::Formulation;
use fem_solve::linalg::{DistMatrix, DistSymmetric};
use fem_solve::log::peak_memory_mib;
use fem_solve::model::{Material, Model};
use fem_solve::precond::amg::NodeData;
use fem_solve::precond::amg::report::Step;
use fem_solve::precond::{Amg, AmgOptions, rigid_body_modes};
use std::time::Instant;

fn main() -> Result<()> {
    let numbers: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let number = |at: usize, default: usize| numbers.get(at).copied().unwrap_or(default);
    let (rounds, n, n_threads) = (number(0, 5), number(1, 64), number(2, 1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
    let pool = pool.build().map_err(|e| Error::machine(e.to_string()))?;
    pool.install(|| measure(rounds, n))
}

fn model(n: usize) -> Result<Model> {
    let comm = Comm::alone();
    let spec = BoxMesh {
        size: [1.0; 3],
        cells: [n; 3],
        cell_type: CellType::Hex8,
        origin: [0.0; 3],
    };
    let (mesh, _) = distribute_slices(&comm, generate_slice(&spec, &comm, None)?, None)?;
    let held = (0..mesh.coords.len()).filter(|&node| mesh.coords[node][0] == 0.0);
    Ok(Model {
        cell_material: vec![0; mesh.n_cells()],
        cell_formulation: vec![Formulation::Full; mesh.n_cells()],
        fixed: held
            .flat_map(|node| (0..3).map(move |c| (3 * node as u32 + c, 0.0)))
            .collect(),
        mesh,
        materials: vec![Material::isotropic("unit", 1.0, 0.3, 0.0)],
        orientations: Vec::new(),
        cell_orientation: Vec::new(),
        temperatures: None,
        loads: Vec::new(),
        links: Default::default(),
    })
}

fn measure(rounds: usize, n: usize) -> Result<()> {
    let comm = Comm::alone();
    let model = model(n)?;
    let mut best = [f64::INFINITY; 4 + Step::ALL.len()];
    let mut lines = Vec::new();
    for _ in 0..rounds {
        let mut times = Vec::new();
        let mut clock = Instant::now();
        let mut lap = |times: &mut Vec<f64>| {
            times.push(clock.elapsed().as_secs_f64());
            clock = Instant::now();
        };
        let (pattern, mut rows) = Pattern::new(&model.mesh)?;
        assemble_stiffness(&comm, &model, &pattern, &mut rows)?;
        let mut rhs = vec![0.0; 3 * model.mesh.coords.len()];
        constrain(pattern.slabs(), &model.fixed, &mut rows, &mut rhs);
        drop(pattern);
        let matrix = DistMatrix::new(&comm, model.mesh.nodes.clone(), rows.lower, rows.ghost);
        lap(&mut times);
        let fixed = model.fixed.iter().map(|(dof, _)| *dof);
        let near_nullspace = rigid_body_modes(&comm, &model.mesh.coords, fixed, &[]);
        lap(&mut times);
        let nodes = NodeData {
            near_nullspace,
            parents: None,
        };
        let amg = Amg::new(&comm, &matrix, nodes, &AmgOptions::default())?;
        lap(&mut times);
        let norm = matrix.norm_inf(&comm);
        let matrix = DistSymmetric::new(matrix);
        lap(&mut times);
        std::hint::black_box((norm, matrix));
        times.extend(Step::ALL.map(|step| amg.report().seconds(step)));
        best.iter_mut()
            .zip(times)
            .for_each(|(best, time)| *best = best.min(time));
        lines = amg.report().lines();
    }
    lines[..lines.len() - 1]
        .iter()
        .for_each(|line| println!("{line}"));
    let names = [
        "assembly",
        "rigid-body modes",
        "multigrid",
        "norm and slabs",
    ];
    let names = names.into_iter().chain(Step::ALL.map(Step::name));
    for (name, time) in names.zip(best) {
        println!("{name:17} {:7.1}", 1e3 * time);
    }
    println!("peak {:.0} MiB", peak_memory_mib());
    Ok(())
}
