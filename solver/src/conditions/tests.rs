//! Every kind of law and of initial state: stiffness, loads and recovery must agree with one another.

use super::temperature_weights;
use crate::assembly::test_models::{distorted_box, mixed_mesh, model, split};
use crate::assembly::{BlockRows, Pattern, Slabs, add_initial_force, assemble_stiffness};
use crate::element::formulation::is_available;
use crate::element::geometry::interpolate;
use crate::element::{Formulation, Purpose, Tabulation};
use crate::material::{Axes, Law, Orientation};
use crate::model::{GLOBAL_AXES, Load, Material, Model, Temperatures};
use crate::post::{compute_nodal_tensors, internal_force, strain_energy};
use fem_io::case::{AtTemperature, ElasticInput, MaterialInput};
use fem_mesh::comm::run_threads;
use fem_mesh::{CellType, Comm, Halo, Mesh};

const ANY: ElasticInput = ElasticInput::Anisotropic([
    300.0, 110.0, 320.0, 130.0, 140.0, 350.0, 16.0, 17.0, 18.0, 90.0, 20.0, 21.0, 22.0, 23.0, 84.0,
    25.0, 26.0, 27.0, 28.0, 29.0, 80.0,
]);

fn at<V>(temperature: f64, value: V) -> AtTemperature<V> {
    AtTemperature { temperature, value }
}

fn material(elastic: Vec<AtTemperature<ElasticInput>>) -> Material {
    let law = Law::new(&MaterialInput {
        name: String::new(),
        elements: vec![],
        elastic,
        expansion: vec![
            at(0.0, [1e-3, 2e-3, 3e-3, 1e-3, 0.0, -1e-3]),
            at(100.0, [2e-3, 2e-3, 2e-3, 0.0, 0.0, 0.0]),
        ],
        reference_temperature: 20.0,
        density: None,
        conductivity: None,
        specific_heat: None,
        place: Default::default(),
    });
    Material {
        name: String::new(),
        law,
        density: 0.0,
    }
}

/// Materials, axes, temperatures and initial states of every kind beside one another.
fn motley(comm: &Comm, mesh: &Mesh) -> Model {
    let mut model = model(split(comm, mesh));
    let steel = |young, poisson| ElasticInput::Isotropic { young, poisson };
    model.materials.push(material(vec![at(0.0, ANY)]));
    model.materials.push(material(vec![
        at(0.0, steel(200.0, 0.3)),
        at(100.0, steel(100.0, 0.2)),
    ]));
    let (s, c) = 0.5f64.sin_cos();
    let turned: Axes = [[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]];
    model.orientations = vec![
        Orientation::Rectangular(turned),
        Orientation::Cylindrical {
            origin: [-1.0, 0.3, 0.0],
            axis: [0.0, 0.0, 1.0],
            turn: turned,
        },
    ];
    let ids = &model.mesh.cell_ids;
    model.cell_material = ids.iter().map(|id| (id % 3) as u16).collect();
    let axes = |id: &u64| [0, 1, GLOBAL_AXES][(id / 3 % 3) as usize];
    model.cell_orientation = ids.iter().map(axes).collect();
    let some = |k: u64| -> Vec<u32> {
        let cells = 0..ids.len() as u32;
        cells.filter(|&c| ids[c as usize] % 5 == k).collect()
    };
    model.loads = vec![
        Load::TemperatureChange {
            cells: some(0),
            change: 7.0,
        },
        Load::InitialStress {
            cells: some(1),
            stress: [1.0, -2.0, 0.5, 0.3, 0.2, -0.4],
        },
        Load::InitialStrain {
            cells: some(2),
            strain: [0.01, 0.0, -0.02, 0.03, 0.0, 0.01],
        },
    ];
    let x = &model.mesh.coords;
    model.temperatures = Some(Temperatures {
        initial: x
            .iter()
            .map(|x| if x[0] > 0.7 { f64::NAN } else { 25.0 })
            .collect(),
        current: x
            .iter()
            .map(|x| {
                if x[1] > 0.6 {
                    f64::NAN
                } else {
                    40.0 + 20.0 * x[2] * x[0]
                }
            })
            .collect(),
    });
    model
}

/// The motley of a mesh in which every other cell has a formulation of its own, where its type has it.
fn motley_of(comm: &Comm, mesh: &Mesh, formulation: Formulation) -> Model {
    let mut model = motley(comm, mesh);
    for (cell, of_cell) in model.cell_formulation.iter_mut().enumerate() {
        let is_odd = model.mesh.cell_ids[cell] % 2 == 1;
        if is_odd && is_available(model.mesh.cells.types[cell], formulation) {
            *of_cell = formulation;
        }
    }
    model
}

fn meshes() -> Vec<Mesh> {
    let boxes = CellType::SOLIDS.map(|t| distorted_box(t, [2, 3, 2], true));
    [boxes.to_vec(), vec![mixed_mesh()]].concat()
}

fn wavy([x, y, z]: [f64; 3]) -> [f64; 3] {
    [
        0.01 * (3.0 * y + z).sin(),
        0.02 * (2.0 * x * z).cos(),
        0.01 * (x - 4.0 * y).sin() + 0.003 * z * z,
    ]
}

fn sample(model: &Model) -> Vec<f64> {
    model.mesh.coords.iter().flat_map(|&x| wavy(x)).collect()
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// K u of the owned rows.
fn product(rows: &BlockRows, n_owned: usize, u: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; 3 * n_owned];
    for (part, first) in [(&rows.lower, 0), (&rows.ghost, n_owned)] {
        for row in 0..n_owned {
            for place in part.row(row) {
                let column = part.columns[place] as usize + first;
                for (at, k) in part.block(place).iter().enumerate() {
                    let (i, j) = (3 * row + at / 3, 3 * column + at % 3);
                    product[i] += k * u[j];
                    if column < row {
                        product[j] += k * u[i];
                    }
                }
            }
        }
    }
    product
}

#[test]
fn internal_force_is_stiffness_times_displacement_less_the_initial_force() {
    let formulations = Formulation::NAMES.map(|(_, formulation)| formulation);
    for (k, mesh) in meshes().into_iter().enumerate() {
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let model = motley_of(comm, &mesh, formulations[(k + n_ranks) % 4]);
                let (pattern, mut rows) = Pattern::new(&model.mesh).unwrap();
                assemble_stiffness(comm, &model, &pattern, &mut rows).unwrap();
                let u = sample(&model);
                let n_owned = model.mesh.nodes.n_owned();
                let mut initial = vec![0.0; 3 * n_owned];
                add_initial_force(&model, pattern.slabs(), &mut initial);
                assert!(comm.any(norm(&initial) > 0.1));
                let expected = product(&rows, n_owned, &u);
                let found = internal_force(&model, &u);
                let error: Vec<f64> = (found.iter().zip(&expected).zip(&initial))
                    .map(|((found, elastic), initial)| found - (elastic - initial))
                    .collect();
                assert!(norm(&error) <= 1e-11 * norm(&expected));
            });
        }
    }
}

#[test]
fn internal_force_is_the_derivative_of_energy() {
    let comm = Comm::alone();
    for (_, formulation) in Formulation::NAMES {
        let model = motley_of(&comm, &mixed_mesh(), formulation);
        let mut u = sample(&model);
        let force = internal_force(&model, &u);
        for dof in (0..u.len()).step_by(17) {
            // The energy is a quadratic function: the central difference is exact for any step.
            let (at, step) = (u[dof], 0.1);
            let [high, low] = [at + step, at - step].map(|value| {
                u[dof] = value;
                strain_energy(&comm, &model, &u)
            });
            u[dof] = at;
            assert!(((high - low) / (2.0 * step) - force[dof]).abs() < 1e-11 * norm(&force));
        }
    }
}

#[test]
fn slabs_do_not_change_a_bit() {
    let comm = Comm::alone();
    let model = motley_of(&comm, &mixed_mesh(), Formulation::BBar);
    let with = |n| {
        let (pattern, mut rows) = Pattern::with_slabs(&model.mesh, n).unwrap();
        assemble_stiffness(&comm, &model, &pattern, &mut rows).unwrap();
        let n_owned = model.mesh.nodes.n_owned();
        let mut force = vec![0.0; 3 * n_owned];
        add_initial_force(&model, &Slabs::even(n_owned, n), &mut force);
        (rows, force)
    };
    let one = with(1);
    assert!(with(3) == one && with(5) == one);
}

#[test]
fn ranks_agree_on_nodal_stresses() {
    let mesh = mixed_mesh();
    let recover = |comm: &Comm, model: &Model| {
        let halo = Halo::new(comm, &model.mesh.nodes);
        let tensors = compute_nodal_tensors(comm, model, &halo, &sample(model));
        let mut all = Vec::new();
        for node in 0..model.mesh.nodes.n_local() {
            for &material in tensors.materials_of(node) {
                let key = (model.mesh.nodes.global(node), material);
                all.push((key, tensors.stress_at(node, material)));
            }
        }
        all
    };
    let alone = Comm::alone();
    let expected = recover(&alone, &motley(&alone, &mesh));
    for n_ranks in 2..=4 {
        run_threads(n_ranks, |comm| {
            for (key, stress) in recover(comm, &motley(comm, &mesh)) {
                let whole = &expected.iter().find(|(other, _)| *other == key).unwrap().1;
                for (a, b) in stress.iter().zip(whole) {
                    assert!((a - b).abs() < 1e-11, "{key:?}");
                }
            }
        });
    }
}

#[test]
fn a_directional_law_without_direction_gives_what_the_simple_one_gives() {
    let comm = Comm::alone();
    let simple = model(split(&comm, &mixed_mesh()));
    let mut general = simple.clone();
    let d = ElasticInput::Isotropic {
        young: 200.0,
        poisson: 0.3,
    };
    let d = d.stiffness();
    let (a, l, g) = (d[0][0], d[0][1], d[3][3]);
    general.materials[0] = material(vec![at(
        0.0,
        ElasticInput::Orthotropic([a, l, a, l, l, a, g, g, g]),
    )]);
    let halo = Halo::new(&comm, &simple.mesh.nodes);
    let u = sample(&simple);
    let [one, other] = [&simple, &general].map(|model| {
        let tensors = compute_nodal_tensors(&comm, model, &halo, &u);
        let nodes = 0..model.mesh.nodes.n_local();
        let stresses: Vec<f64> = nodes.flat_map(|node| tensors.stress_at(node, 0)).collect();
        (
            internal_force(model, &u),
            strain_energy(&comm, model, &u),
            stresses,
        )
    });
    let close = |a: &[f64], b: &[f64]| {
        let error: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        norm(&error) < 1e-12 * norm(a)
    };
    assert!(close(&one.0, &other.0) && close(&[one.1], &[other.1]) && close(&one.2, &other.2));
}

#[test]
fn temperatures_are_interpolated_no_finer_than_strains() {
    for cell_type in CellType::SOLIDS {
        let nodes = crate::element::shape::natural_nodes(cell_type);
        let linear: Vec<[f64; 1]> = nodes
            .iter()
            .map(|x| [1.0 + x[0] - 2.0 * x[1] + x[2]])
            .collect();
        let mean = linear.iter().map(|v| v[0]).sum::<f64>() / linear.len() as f64;
        let table = Tabulation::of(cell_type, Purpose::Stiffness);
        for (q, point) in table.points.iter().enumerate() {
            let weights = temperature_weights(cell_type, point.xi, table.shape(q));
            let found = interpolate(&linear, &weights)[0];
            let [r, s, t] = point.xi;
            let exact = if cell_type == CellType::Hex8 {
                mean
            } else {
                1.0 + r - 2.0 * s + t
            };
            assert!((found - exact).abs() < 1e-14, "{cell_type}");
        }
    }
    // In hex20 a square becomes the constant 1/3, its value at the 2x2x2 points.
    let square: Vec<[f64; 1]> = crate::element::shape::natural_nodes(CellType::Hex20)
        .iter()
        .map(|x| [x[0] * x[0]])
        .collect();
    let weights = temperature_weights(CellType::Hex20, [0.9, -0.4, 0.1], &[]);
    assert!((interpolate(&square, &weights)[0] - 1.0 / 3.0).abs() < 1e-14);
}
