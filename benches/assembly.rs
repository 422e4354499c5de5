//! How long the making of the system takes: pattern, element matrices alone, elements with scatter, loads; and what is
//! recovered after the solution.
//!
//! Boxes of n^3 bricks of each type. The element kernel is measured in cache; what assembly takes beyond it is the
//! scatter into memory touched for the first time. Each figure is the best of the rounds, in seconds.
//!
//! Run: `cargo bench -p fem-solve --bench assembly [-- ROUNDS]`

use fem_mesh::distribute::distribute_slices;
use fem_mesh::generate::{BoxMesh, generate_slice};
use fem_mesh::halo::Halo;
use fem_mesh::{CellType, Comm, Result};
use fem_solve::assembly::{Pattern, assemble_stiffness, external_force};
use fem_solve::element::solid::{Elements, stiffness_len};
use fem_solve::element::{Formulation, Purpose, StiffnessKernel};
use fem_solve::model::{Load, Material, Model};
use fem_solve::post::{compute_nodal_tensors, internal_force};
use std::hint::black_box;
use std::time::Instant;

fn main() -> Result<()> {
    let rounds = std::env::args().find_map(|a| a.parse().ok()).unwrap_or(5);
    println!(
        "type  n threads | pattern elements+scatter total | loads internal-force stress | MiB"
    );
    for (cell_type, n) in [
        (CellType::Hex8, 64),
        (CellType::Tet4, 48),
        (CellType::Wedge6, 48),
        (CellType::Tet10, 32),
        (CellType::Hex20, 32),
    ] {
        let model = model(cell_type, n)?;
        let alone = elements_alone(&model);
        for n_threads in [1, 2] {
            match rayon::ThreadPoolBuilder::new()
                .num_threads(n_threads)
                .build()
            {
                Ok(pool) => pool.install(|| measure(&model, n, rounds))?,
                Err(error) => eprintln!("no pool of {n_threads} threads: {error}"),
            }
        }
        println!(
            "{cell_type}: elements alone, one thread, in cache: {:.2} M/s",
            alone * 1e-6
        );
    }
    Ok(())
}

fn model(cell_type: CellType, n: usize) -> Result<Model> {
    let comm = Comm::alone();
    let spec = BoxMesh {
        size: [1.0; 3],
        cells: [n; 3],
        cell_type,
        origin: [0.0; 3],
    };
    let (mesh, _) = distribute_slices(&comm, generate_slice(&spec, &comm, None)?, None)?;
    let steel = Material::isotropic("steel", 1.0, 0.3, 0.0);
    let cells = (0..mesh.n_cells() as u32).collect();
    Ok(Model {
        cell_material: vec![0; mesh.n_cells()],
        cell_formulation: vec![Formulation::Full; mesh.n_cells()],
        mesh,
        materials: vec![steel],
        orientations: Vec::new(),
        cell_orientation: Vec::new(),
        temperatures: None,
        fixed: Vec::new(),
        links: Default::default(),
        loads: vec![Load::BodyForce {
            cells,
            body_force: [0.0, 0.0, -1.0],
        }],
    })
}

/// Element matrices a second, for a few elements again and again.
fn elements_alone(model: &Model) -> f64 {
    let cell_type = model.mesh.cells.types[0];
    let n_elements = 16;
    let mut coords = Vec::new();
    for cell in 0..n_elements {
        let nodes = model.mesh.cells.nodes_of(cell).iter();
        coords.extend(nodes.map(|&node| model.mesh.coords[node as usize]));
    }
    let lame = vec![[1.0, 1.0]; n_elements];
    let elements = Elements {
        rule: Purpose::Stiffness,
        cell_type,
        coords: &coords,
        lame: &lame,
    };
    let mut kernel = StiffnessKernel::default();
    let mut stiffness = vec![0.0; n_elements * stiffness_len(cell_type)];
    let mut min_det = vec![0.0; n_elements];
    let mut best = f64::INFINITY;
    for _ in 0..200 {
        best = best.min(seconds(|| {
            for _ in 0..10 {
                kernel.compute(black_box(elements), &mut stiffness, &mut min_det);
            }
        }));
    }
    10.0 * n_elements as f64 / best
}

fn seconds(job: impl FnOnce()) -> f64 {
    let start = Instant::now();
    job();
    start.elapsed().as_secs_f64()
}

fn measure(model: &Model, n: usize, rounds: usize) -> Result<()> {
    let comm = Comm::alone();
    let mut best = [f64::INFINITY; 5];
    let mut mib = 0.0;
    let displacement: Vec<f64> = model.mesh.coords.iter().flatten().map(|x| x * x).collect();
    let halo = Halo::new(&comm, &model.mesh.nodes);
    for _ in 0..rounds {
        let start = Instant::now();
        let (pattern, mut rows) = Pattern::new(&model.mesh)?;
        let mut times = [start.elapsed().as_secs_f64(), 0.0, 0.0, 0.0, 0.0];
        let start = Instant::now();
        assemble_stiffness(&comm, model, &pattern, &mut rows)?;
        times[1] = start.elapsed().as_secs_f64();
        let slabs = pattern.slabs();
        times[2] = seconds(|| drop(black_box(external_force(model, slabs))));
        times[3] = seconds(|| drop(black_box(internal_force(model, &displacement))));
        times[4] = seconds(|| {
            black_box(compute_nodal_tensors(&comm, model, &halo, &displacement));
        });
        for (best, time) in best.iter_mut().zip(times) {
            *best = best.min(time);
        }
        mib = (rows.lower.memory() + pattern.memory()) as f64 / 1024.0 / 1024.0;
    }
    let [pattern, elements, loads, force, stress] = best;
    println!(
        "{} {n} {} | {pattern:.3} {elements:.3} {:.3} | {loads:.3} {force:.3} {stress:.3} | {mib:.0}",
        model.mesh.cells.types[0],
        rayon::current_num_threads(),
        pattern + elements,
    );
    Ok(())
}
