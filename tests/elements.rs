//! Elements and formulations against closed forms and published values: MacNeal and Harder's beam and thick cylinder, Cook's
//! membrane, and what one reduced element leaves free.
//!
//! Sources: MacNeal and Harder, Finite Elem. Anal. Des. 1 (1985) 3-20; Cook, J. Struct. Div. ASCE 100 (1974) 1851-1863.

use crate::common::{box_case, on_ranks, summary, write_case};
use fem_io::case::{Method, SolverOptions};
use fem_mesh::comm::run_threads;
use fem_mesh::{BoxMesh, CellType, Comm, Halo, LocalMesh, distribute_slices, generate_slice};
use fem_solve::analysis::linear_static::{Solution, solve};
use fem_solve::element::Formulation;
use fem_solve::log::Log;
use fem_solve::model::{Load, Material, Model};
use fem_solve::post::seen_strain;
use std::sync::Mutex;

/// Whether component `c` of the displacement is held at a place of the unit box.
type Held = fn([f64; 3]) -> [bool; 3];

/// A problem on a mapped unit box.
struct Problem {
    cells: [usize; 3],
    map: fn([f64; 3]) -> [f64; 3],
    young: f64,
    poisson: f64,
    held: Held,
    /// The loaded side of the box, and what acts on it.
    side: &'static str,
    load: SideLoad,
}

#[derive(Clone, Copy)]
enum SideLoad {
    Traction([f64; 3]),
    Pressure(f64),
}

/// An element type with its formulation.
type Kind = (CellType, Formulation);

impl Problem {
    /// Collective. The model; its mesh has the coordinates of the box in `places`.
    fn model(&self, comm: &Comm, (cell_type, formulation): Kind) -> (Model, Vec<[f64; 3]>) {
        let spec = BoxMesh {
            size: [1.0; 3],
            cells: self.cells,
            cell_type,
            origin: [0.0; 3],
        };
        let slice = generate_slice(&spec, comm, None).unwrap();
        let mut mesh: LocalMesh = distribute_slices(comm, slice, None).unwrap().0;
        let places = mesh.coords.clone();
        mesh.coords.iter_mut().for_each(|x| *x = (self.map)(*x));
        let mut fixed = Vec::new();
        for (node, x) in places.iter().enumerate() {
            let held = (self.held)(*x).into_iter().enumerate();
            fixed.extend(
                held.filter(|(_, is_held)| *is_held)
                    .map(|(c, _)| ((3 * node + c) as u32, 0.0)),
            );
        }
        let faces = mesh.sets.faces[self.side].clone();
        let load = match self.load {
            SideLoad::Traction(traction) => Load::Traction { faces, traction },
            SideLoad::Pressure(pressure) => Load::Pressure { faces, pressure },
        };
        let material = Material::isotropic("m", self.young, self.poisson, 0.0);
        let model = Model {
            cell_material: vec![0; mesh.n_cells()],
            cell_formulation: vec![formulation; mesh.n_cells()],
            mesh,
            materials: vec![material],
            orientations: Vec::new(),
            cell_orientation: Vec::new(),
            temperatures: None,
            fixed,
            loads: vec![load],
            links: Default::default(),
        };
        (model, places)
    }

    /// Mean displacement of the nodes that `at` names by their places in the box; loads and reactions balance.
    fn displacement(&self, kind: Kind, n_ranks: usize, at: fn([f64; 3]) -> bool) -> [f64; 3] {
        let result = Mutex::new([0.0; 3]);
        run_threads(n_ranks, |comm| {
            let (model, places) = self.model(comm, kind);
            let solution = solved(comm, &model);
            let mut sum = [0.0; 4];
            let n_owned = model.mesh.nodes.n_owned();
            for (node, _) in (0..n_owned).zip(&places).filter(|(_, x)| at(**x)) {
                sum[3] += 1.0;
                (0..3).for_each(|c| sum[c] += solution.displacement[3 * node + c]);
            }
            comm.sum_into(&mut sum);
            assert!(solution.totals.balance_error < 1e-9, "{kind:?}");
            if comm.is_root() {
                *result.lock().unwrap() = [0, 1, 2].map(|c| sum[c] / sum[3]);
            }
        });
        result.into_inner().unwrap()
    }
}

fn solved(comm: &Comm, model: &Model) -> Solution {
    let halo = Halo::new(comm, &model.mesh.nodes);
    let options = SolverOptions {
        method: Method::Direct,
        ..SolverOptions::default()
    };
    solve(comm, model, &halo, &options, &mut Log::new(false)).unwrap()
}

#[track_caller]
fn assert_within(found: f64, expected: f64, tolerance: f64, context: &str) {
    let error = (found - expected).abs() / expected.abs();
    println!("{context}: {found:.6e}, expected {expected:.6e}, error {error:.2e}");
    assert!(error <= tolerance, "{context}: {found:e} for {expected:e}");
}

const FULL_HEX8: Kind = (CellType::Hex8, Formulation::Full);
const FULL_HEX20: Kind = (CellType::Hex20, Formulation::Full);
const REDUCED_HEX20: Kind = (CellType::Hex20, Formulation::Reduced);
const MODES_HEX8: Kind = (CellType::Hex8, Formulation::IncompatibleModes);

/// The straight beam of MacNeal and Harder, 6 x 0.2 x 0.1 in six elements, with a unit force on its tip.
fn beam(force: [f64; 3]) -> Problem {
    Problem {
        cells: [6, 1, 1],
        map: |[x, y, z]| [6.0 * x, 0.2 * y, 0.1 * z],
        young: 1e7,
        poisson: 0.3,
        held: |[x, _, _]| [x == 0.0; 3],
        side: "xmax",
        load: SideLoad::Traction(force.map(|f| f / 0.02)),
    }
}

/// Displacement of the tip along each of extension, in-plane and out-of-plane force.
fn beam_tip(kind: Kind, n_ranks: usize) -> [f64; 3] {
    [0, 1, 2].map(|c| {
        let mut force = [0.0; 3];
        force[c] = 1.0;
        beam(force).displacement(kind, n_ranks, |x| x[0] == 1.0)[c]
    })
}

#[test]
fn the_straight_beam_of_macneal_and_harder() {
    let theory = [3.0e-5, 0.1081, 0.4321];
    // Values of the elements on this mesh by another program (CalculiX 2.20); tolerances in extension, bending.
    let of_elements = [
        (FULL_HEX8, [2.95683e-5, 0.010_043_3, 0.010_881_8]),
        (FULL_HEX20, [2.98268e-5, 0.104_884, 0.415_113]),
        (REDUCED_HEX20, [2.99704e-5, 0.106_356, 0.420_083]),
    ];
    for (kind, expected) in of_elements {
        for (found, expected) in beam_tip(kind, 2).into_iter().zip(expected) {
            assert_within(found, expected, 1e-3, &format!("beam, {kind:?}"));
        }
    }
    for kind in [MODES_HEX8, (CellType::Hex27, Formulation::Full)] {
        for (found, expected) in beam_tip(kind, 3).into_iter().zip(theory) {
            assert_within(found, expected, 0.03, &format!("beam, {kind:?}"));
        }
    }
}

/// The thick cylinder of MacNeal and Harder under a unit pressure inside: radii 3 to 9, plane strain; a quarter instead of
/// their 10 degrees, in the same elements.
fn cylinder(poisson: f64) -> Problem {
    Problem {
        cells: [5, 9, 1],
        map: |[x, y, z]| {
            const RADII: [f64; 6] = [3.0, 3.5, 4.2, 5.2, 6.75, 9.0];
            let at = 5.0 * x;
            let k = (at.floor() as usize).min(4);
            let share = at - k as f64;
            let r = RADII[k] * (1.0 - share) + RADII[k + 1] * share;
            let angle = y * std::f64::consts::FRAC_PI_2;
            [r * angle.cos(), r * angle.sin(), z]
        },
        young: 1000.0,
        poisson,
        held: |[_, y, z]| [y == 1.0, y == 0.0, z == 0.0 || z == 1.0],
        side: "xmin",
        load: SideLoad::Pressure(1.0),
    }
}

/// Radial displacement inside, by the node on the x axis.
fn radial(kind: Kind, poisson: f64, n_ranks: usize) -> f64 {
    cylinder(poisson).displacement(kind, n_ranks, |[x, y, z]| x == 0.0 && y == 0.0 && z == 0.0)[0]
}

fn exact_radial(nu: f64) -> f64 {
    (1.0 + nu) * 9.0 / (1000.0 * 72.0) * (27.0 + 3.0 * (1.0 - 2.0 * nu))
}

#[test]
fn the_thick_cylinder_near_incompressibility() {
    assert_within(exact_radial(0.4999), 5.0623e-3, 1e-4, "the formula");
    // What full integration of hex8 makes of it (CalculiX 2.20): it locks.
    for (nu, locked) in [
        (0.3, 4.5175e-3),
        (0.49, 4.2571e-3),
        (0.499, 1.8154e-3),
        (0.4999, 2.6894e-4),
    ] {
        let context = format!("cylinder, hex8 at nu = {nu}");
        assert_within(radial(FULL_HEX8, nu, 2), locked, 1e-3, &context);
    }
    for kind in [
        (CellType::Hex8, Formulation::BBar),
        (CellType::Hex8, Formulation::Reduced),
        MODES_HEX8,
        REDUCED_HEX20,
    ] {
        for nu in [0.3, 0.49, 0.499, 0.4999] {
            let context = format!("cylinder, {kind:?} at nu = {nu}");
            assert_within(radial(kind, nu, 2), exact_radial(nu), 0.02, &context);
        }
    }
}

/// Cook's membrane as a slab in plane stress, 8 x 8 elements.
#[test]
fn cooks_membrane() {
    let problem = Problem {
        cells: [8, 8, 1],
        map: |[x, y, z]| [48.0 * x, 44.0 * x + y * (44.0 - 28.0 * x), z],
        young: 1.0,
        poisson: 1.0 / 3.0,
        held: |[x, _, z]| [x == 0.0, x == 0.0, z == 0.0],
        side: "xmax",
        load: SideLoad::Traction([0.0, 1.0 / 16.0, 0.0]),
    };
    let tip = |kind| problem.displacement(kind, 2, |x| x == [1.0, 0.5, 0.0])[1];
    assert_within(tip(FULL_HEX8), 21.8213, 1e-3, "Cook, hex8");
    // 23.96 by refinement.
    assert_within(tip(MODES_HEX8), 23.96, 0.015, "Cook, incompatible modes");
    for kind in [
        FULL_HEX20,
        REDUCED_HEX20,
        (CellType::Hex27, Formulation::Full),
        (CellType::Wedge15, Formulation::Full),
        (CellType::Pyramid13, Formulation::Full),
    ] {
        assert_within(tip(kind), 23.96, 0.01, &format!("Cook, {kind:?}"));
    }
}

/// Traction on a cube with its middle node moved, held on three sides: V02, a patch test by forces.
#[test]
fn a_pull_on_a_distorted_cube_is_exact_in_every_formulation() {
    let problem = Problem {
        cells: [2; 3],
        map: |x| match x {
            [0.5, 0.5, 0.5] => [0.6; 3],
            x => x,
        },
        young: 1e6,
        poisson: 0.25,
        held: |x| x.map(|x| x == 0.0),
        side: "xmax",
        load: SideLoad::Traction([2000.0, 0.0, 0.0]),
    };
    for (_, formulation) in Formulation::NAMES {
        let kind = (CellType::Hex8, formulation);
        for n_ranks in 1..=4 {
            let found = problem.displacement(kind, n_ranks, |x| x == [1.0; 3]);
            for (found, expected) in found.into_iter().zip([2e-3, -5e-4, -5e-4]) {
                assert_within(found, expected, 1e-10, &format!("pull, {kind:?}"));
            }
        }
    }
}

/// One hex20 of 2 x 2 x 2 points held like a statically determinate body has six motions that cost nothing: either the
/// factorization says so, or what it returns is seen to be hourglasses, or they are not in the answer.
#[test]
fn one_reduced_element_gives_no_silent_nonsense() {
    let problem = Problem {
        cells: [1; 3],
        map: |[x, y, z]| [2.0 * x + 0.1 * y, y, z + 0.2 * x * z],
        young: 1e3,
        poisson: 0.3,
        // Corners at the origin, on the x axis and on the y axis.
        held: |[x, y, z]| {
            let is = |a: f64, b: f64| x == a && y == b && z == 0.0;
            let (origin, on_x, on_y) = (is(0.0, 0.0), is(1.0, 0.0), is(0.0, 1.0));
            [origin, origin || on_x, origin || on_x || on_y]
        },
        side: "xmax",
        load: SideLoad::Traction([1.0, 0.0, 0.5]),
    };
    run_threads(1, |comm| {
        let (model, _) = problem.model(comm, REDUCED_HEX20);
        let halo = Halo::new(comm, &model.mesh.nodes);
        let options = SolverOptions {
            method: Method::Direct,
            ..SolverOptions::default()
        };
        match solve(comm, &model, &halo, &options, &mut Log::new(false)) {
            Err(error) => assert_eq!(error.exit_code(), 3, "{error}"),
            Ok(solution) => {
                let seen = seen_strain(comm, &model, &solution.displacement);
                let full = Model {
                    cell_formulation: vec![Formulation::Full],
                    ..model.clone()
                };
                let sound = solved(comm, &full).totals.max_displacement;
                let is_sound = solution.totals.max_displacement < 2.0 * sound;
                assert!(is_sound || seen.is_mostly_hidden(), "{seen:?}");
            }
        }
    });
}

/// The case of a box of one element across, of a nearly incompressible material, with more tables.
fn thin_case(element: &str, tables: &str) -> String {
    let text = box_case([8, 1, 1], element, tables);
    text.replace("poisson = 0.3", "poisson = 0.4999")
}

#[test]
fn element_tables_are_obeyed_and_what_they_cannot_mean_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let solved = |text: &str, n| {
        let case = write_case(folder.path(), text);
        let run = on_ranks(n, folder.path(), &[&case]).expect_code(0);
        let results = summary(&folder.path().join("results"));
        let largest = results["results"]["max_displacement"].as_f64().unwrap();
        (largest, run.stderr)
    };
    let b_bar = "[[element]]\nformulation = \"b_bar\"\n";
    let reduced = "[[element]]\nformulation = \"reduced\"\n";
    let half = "[[set]]\nname = \"half\"\nelements_in_box = { max = [1.0, \"inf\", \"inf\"] }\n\
                [[element]]\nelements = \"half\"\nformulation = \"b_bar\"\n";
    for n in [0, 1, 3] {
        let (locked, warning) = solved(&thin_case("hex8", ""), n);
        assert!(warning.contains("formulation \"b_bar\""), "{warning}");
        let (free, warning) = solved(&thin_case("hex8", b_bar), n);
        assert!(!warning.contains("lock"), "{warning}");
        let (mixed, warning) = solved(&thin_case("hex8", half), n);
        assert!(
            warning.contains("in 4 hex8 elements, which lock"),
            "{warning}"
        );
        assert!(
            locked < 0.8 * mixed && mixed < 0.95 * free,
            "{locked} {mixed} {free}"
        );
        // One layer of single points bends against nothing but hourglass control.
        let (_, warning) = solved(&box_case([8, 1, 1], "hex8", reduced), n);
        assert!(warning.contains("hourglass patterns"), "{warning}");
        let (_, warning) = solved(&box_case([4, 2, 2], "hex20", reduced), n);
        assert!(!warning.contains("hourglass"), "{warning}");

        let refused = |text: &str| {
            let case = write_case(folder.path(), text);
            on_ranks(n, folder.path(), &[&case]).expect_code(2).stderr
        };
        let message = refused(&thin_case("tet10", b_bar));
        assert!(
            message.contains("formulation \"b_bar\" is none of the elements here (48 tet10)"),
            "{message}"
        );
        let message = refused(&thin_case("hex8", &format!("{reduced}{half}")));
        assert!(
            message.contains("element 1 has two formulations"),
            "{message}"
        );
    }
}
