//! Laws of material, temperatures and initial states against closed forms, on 1 to 4 ranks.

use fem_io::case::{Method, SolverOptions, parse};
use fem_mesh::comm::run_threads;
use fem_mesh::{BoxMesh, CellType, Comm, Halo, LocalMesh, distribute_slices, generate_slice};
use fem_solve::analysis::linear_static::{Solution, solve};
use fem_solve::log::Log;
use fem_solve::model::Model;
use fem_solve::resolve::resolve;
use std::path::Path;

/// Supports that hold the rigid motions of the unit cube, statically determinate.
const DETERMINATE: &str = r#"
[[set]]
name = "origin"
nodes_in_box = { min = [0, 0, 0], max = [0, 0, 0] }
[[set]]
name = "on_x"
nodes_in_box = { min = [1, 0, 0], max = [1, 0, 0] }
[[set]]
name = "on_y"
nodes_in_box = { min = [0, 1, 0], max = [0, 1, 0] }
[[constraint]]
on = "origin"
displacement = [0, 0, 0]
[[constraint]]
on = "on_x"
displacement = ["free", 0, 0]
[[constraint]]
on = "on_y"
displacement = ["free", "free", 0]
"#;

/// All faces of the box are held.
const HELD: &str = r#"
[[constraint]]
on = ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"]
displacement = [0, 0, 0]
"#;

/// Collective. A unit cube of bricks cut into cells of the type, moved by `map`.
fn mesh(
    comm: &Comm,
    cell_type: CellType,
    cells: [usize; 3],
    map: impl Fn([f64; 3]) -> [f64; 3],
) -> LocalMesh {
    let spec = BoxMesh {
        size: [1.0; 3],
        cells,
        cell_type,
        origin: [0.0; 3],
    };
    let mut slice = generate_slice(&spec, comm, None).unwrap();
    slice.coords.iter_mut().for_each(|x| *x = map(*x));
    distribute_slices(comm, slice, None).unwrap().0
}

/// Inner places shifted smoothly; the faces of the cube stay.
fn bumped(x: [f64; 3]) -> [f64; 3] {
    let bump = x.iter().map(|x| 4.0 * x * (1.0 - x)).product::<f64>();
    [x[0] + 0.08 * bump, x[1] - 0.06 * bump, x[2] + 0.05 * bump]
}

/// Collective. A unit cube of eight bricks cut into cells of the type, distorted where its quadrature is exact on curved
/// cells.
fn block(comm: &Comm, cell_type: CellType) -> LocalMesh {
    let is_exact = cell_type.order() == 1 || matches!(cell_type, CellType::Tet10 | CellType::Hex20);
    mesh(comm, cell_type, [2; 3], |x| {
        if is_exact { bumped(x) } else { x }
    })
}

fn resolved(comm: &Comm, mesh: LocalMesh, keys: &str) -> Model {
    let text = format!("[mesh]\nfile = \"a.msh\"\n{keys}");
    let case = parse(Path::new("case.toml"), &text).unwrap();
    resolve(comm, &case, mesh)
        .map(|resolved| resolved.model)
        .unwrap()
}

fn solved(comm: &Comm, model: &Model) -> Solution {
    let halo = Halo::new(comm, &model.mesh.nodes);
    let options = SolverOptions {
        method: Method::Direct,
        tolerance: 1e-12,
        ..SolverOptions::default()
    };
    solve(comm, model, &halo, &options, &mut Log::new(false)).unwrap()
}

/// Every local node has the displacement `u(x)` and, in each of its materials, the stress `s(x)`.
fn assert_state(
    model: &Model,
    solution: &Solution,
    u: impl Fn([f64; 3]) -> [f64; 3],
    s: impl Fn([f64; 3]) -> [f64; 6],
    tolerance: [f64; 2],
) {
    for (node, &x) in model.mesh.coords.iter().enumerate() {
        for (found, exact) in solution.displacement[3 * node..].iter().zip(u(x)) {
            let error = (found - exact).abs();
            assert!(error <= tolerance[0], "u {found} for {exact} at {x:?}");
        }
        for &material in solution.tensors.materials_of(node) {
            for (found, exact) in solution.tensors.stress_at(node, material).iter().zip(s(x)) {
                let error = (found - exact).abs();
                assert!(error <= tolerance[1], "stress {found} for {exact} at {x:?}");
            }
        }
    }
}

fn on_1_to_4_ranks(body: impl Fn(&Comm) + Sync) {
    for n_ranks in 1..=4 {
        run_threads(n_ranks, &body);
    }
}

#[test]
fn an_off_axis_ply_in_tension_stretches_contracts_and_shears() {
    // Jones, Mechanics of Composite Materials (1999), eqs. 2.87 and 2.97: compliances of a ply turned by theta.
    let (e1, e2, nu12, g12, stress) = (140.0, 10.0, 0.3, 5.0, 0.7);
    let (s, c) = 30.0f64.to_radians().sin_cos();
    let (s11, s12, s22, s66) = (1.0 / e1, -nu12 / e1, 1.0 / e2, 1.0 / g12);
    let xx = c.powi(4) * s11 + (2.0 * s12 + s66) * s * s * c * c + s.powi(4) * s22;
    let yy = s12 * (s.powi(4) + c.powi(4)) + (s11 + s22 - s66) * s * s * c * c;
    let xy = (2.0 * s11 - 2.0 * s12 - s66) * s * c.powi(3)
        - (2.0 * s22 - 2.0 * s12 - s66) * s.powi(3) * c;
    let zz = -(0.25 / e1 * c * c + 0.4 / e2 * s * s);
    // Turned by `rotate` and by the direction of axis 1.
    let half = (15.0f64).to_radians();
    let axes = format!(
        "[[orientation]]\nname = \"ply\"\na = [{}, {}, 0]\nb = [0, 1, 0]\nrotate = {{ axis = 3, angle = 15 }}\n",
        half.cos(),
        half.sin()
    );
    let keys = format!(
        "[[material]]\nname = \"ply\"\n\
         orthotropic = {{ young = [140, 10, 9], poisson = [0.3, 0.25, 0.4], shear = [5, 4, 3] }}\n{axes}{DETERMINATE}\
         [[load]]\non = \"xmax\"\ntraction = [{stress}, 0, 0]\n[[load]]\non = \"xmin\"\ntraction = [-{stress}, 0, 0]\n"
    );
    for cell_type in CellType::SOLIDS {
        on_1_to_4_ranks(|comm| {
            let model = resolved(comm, block(comm, cell_type), &keys);
            let u = |[x, y, z]: [f64; 3]| [xx * x + xy * y, yy * y, zz * z].map(|u| u * stress);
            let exact = [stress, 0.0, 0.0, 0.0, 0.0, 0.0];
            assert_state(&model, &solved(comm, &model), u, |_| exact, [1e-12, 1e-10]);
        });
    }
}

#[test]
fn a_strained_anisotropic_block_has_the_stress_of_its_21_terms() {
    let strain = [0.01, -0.02, 0.005, 0.012, -0.008, 0.016];
    let [xx, yy, zz, xy, yz, zx] = strain;
    let u = |[x, y, z]: [f64; 3]| [xx * x + xy * y, yy * y + yz * z, zz * z + zx * x];
    // The terms of the CalculiX test deck aniso. Rows of the law in the order 11 22 33 12 13 23.
    let law = [
        [3.0, 1.1, 1.3, 1.6, 2.0, 2.5],
        [1.1, 3.2, 1.4, 1.7, 2.1, 2.6],
        [1.3, 1.4, 3.5, 1.8, 2.2, 2.7],
        [1.6, 1.7, 1.8, 3.9, 2.3, 2.8],
        [2.0, 2.1, 2.2, 2.3, 4.4, 2.9],
        [2.5, 2.6, 2.7, 2.8, 2.9, 5.0],
    ];
    let [s11, s22, s33, s12, s13, s23] = law.map(|row| {
        row.iter()
            .zip([xx, yy, zz, xy, zx, yz])
            .map(|(d, e)| d * e)
            .sum::<f64>()
    });
    let keys = "[[material]]\nname = \"any\"\nstiffness = [3.0, 1.1, 3.2, 1.3, 1.4, 3.5, 1.6, 1.7, 1.8, 3.9, \
                2.0, 2.1, 2.2, 2.3, 4.4, 2.5, 2.6, 2.7, 2.8, 2.9, 5.0]\n";
    for cell_type in CellType::SOLIDS {
        on_1_to_4_ranks(|comm| {
            let mut model = resolved(comm, block(comm, cell_type), &[keys, HELD].concat());
            for (dof, value) in &mut model.fixed {
                *value = u(model.mesh.coords[*dof as usize / 3])[*dof as usize % 3];
            }
            let exact = [s11, s22, s33, s12, s23, s13];
            let solution = solved(comm, &model);
            assert_state(&model, &solution, u, |_| exact, [1e-12, 1e-11]);
            let energy = 0.5 * exact.iter().zip(strain).map(|(s, e)| s * e).sum::<f64>();
            assert!((solution.totals.strain_energy - energy).abs() < 1e-11 * energy);
        });
    }
}

/// A quarter of a ring of unit thickness; `radius` maps the first natural coordinate.
fn ring(comm: &Comm, cells: [usize; 3], radius: impl Fn(f64) -> f64) -> LocalMesh {
    mesh(comm, CellType::Hex20, cells, |[r, t, z]| {
        let (s, c) = (0.5 * std::f64::consts::PI * t).sin_cos();
        [radius(r) * c, radius(r) * s, z]
    })
}

/// Plane strain of a quarter ring.
const QUARTER: &str = r#"
[[constraint]]
on = "ymin"
displacement = ["free", 0, "free"]
[[constraint]]
on = "ymax"
displacement = [0, "free", "free"]
[[constraint]]
on = ["zmin", "zmax"]
displacement = ["free", "free", 0]
"#;

/// Radial and tangential stress at `x` from a stress in global axes.
fn polar([x, y, _]: [f64; 3], stress: [f64; 6]) -> [f64; 2] {
    let r = x.hypot(y);
    let (c, s) = (x / r, y / r);
    let [xx, yy, _, xy, ..] = stress;
    [
        xx * c * c + yy * s * s + 2.0 * xy * s * c,
        xx * s * s + yy * c * c - 2.0 * xy * s * c,
    ]
}

#[test]
fn a_tube_of_cylindrical_orthotropy_under_pressure() {
    // Lekhnitskii, Anisotropic Plates (1968), section 40: u = A r^k + B r^-k with k^2 = D_tt / D_rr in plane strain.
    let (d_rr, d_rt, d_tt, p) = (10.0, 4.0, 90.0, 0.1);
    let k = f64::sqrt(d_tt / d_rr);
    let (a, b) = (1.0f64, 2.0f64);
    // Radial stress of r^m is (m D_rr + D_rt) r^(m - 1).
    let radial = |m: f64, r: f64| (m * d_rr + d_rt) * r.powf(m - 1.0);
    let det = radial(k, a) * radial(-k, b) - radial(-k, a) * radial(k, b);
    let (up, down) = (-p * radial(-k, b) / det, p * radial(k, b) / det);
    let u = |r: f64| up * r.powf(k) + down * r.powf(-k);
    let hoop = |m: f64, r: f64| (m * d_rt + d_tt) * r.powf(m - 1.0);
    let keys = format!(
        "[[material]]\nname = \"tube\"\nstiffness = [{d_rr}, {d_rt}, {d_tt}, 3, 5, 20, 4, 3, 6]\n\
         [[orientation]]\nname = \"tube\"\ntype = \"cylindrical\"\na = [0, 0, 0]\nb = [0, 0, 1]\n{QUARTER}\
         [[load]]\non = \"xmin\"\npressure = {p}\n"
    );
    on_1_to_4_ranks(|comm| {
        let model = resolved(comm, ring(comm, [14, 8, 1], |r| a * (b / a).powf(r)), &keys);
        let solution = solved(comm, &model);
        for (node, &x) in model.mesh.coords.iter().enumerate() {
            let r = x[0].hypot(x[1]);
            let found = &solution.displacement[3 * node..3 * node + 2];
            let along = (found[0] * x[0] + found[1] * x[1]) / r;
            assert!(
                (along - u(r)).abs() < 2e-4 * u(a),
                "{along} for {} at {r}",
                u(r)
            );
            let [s_r, s_t] = polar(x, solution.tensors.stress_at(node, 0));
            let (e_r, e_t) = (
                up * radial(k, r) + down * radial(-k, r),
                up * hoop(k, r) + down * hoop(-k, r),
            );
            assert!((s_r - e_r).abs() < 0.03 * p, "{s_r} for {e_r} at {r}");
            assert!(
                (s_t - e_t).abs() < 0.02 * e_t.abs(),
                "{s_t} for {e_t} at {r}"
            );
        }
    });
}

/// Steel whose modulus falls and whose expansion rises with temperature.
const HOT_STEEL: &str = "[[material]]\nname = \"steel\"\nreference_temperature = 20\n\
    table = [{ temperature = 0, young = 2e5, poisson = 0.3, expansion = 1e-5 },\n\
             { temperature = 1000, young = 1e5, poisson = 0.3, expansion = 2e-5 }]\n";

#[test]
fn a_block_heated_in_a_rigid_mold_and_one_heated_free() {
    // From 120 to 520 degrees: E = 148 000, strain 1.52e-5 * 500 - 1.12e-5 * 100, stress -E strain / (1 - 2 nu).
    let strain = 1.52e-5 * 500.0 - 1.12e-5 * 100.0;
    let stress = -148_000.0 * strain / 0.4;
    let heat = "[[temperature]]\non = \"all\"\nvalue = 120\ninitial = true\n[[temperature]]\non = \"all\"\nvalue = 520\n";
    let [held, free] = [HELD, DETERMINATE].map(|supports| [HOT_STEEL, heat, supports].concat());
    for cell_type in CellType::SOLIDS {
        on_1_to_4_ranks(|comm| {
            let mesh = block(comm, cell_type);
            let model = resolved(comm, mesh.clone(), &held);
            let exact = [stress, stress, stress, 0.0, 0.0, 0.0];
            let solution = solved(comm, &model);
            assert_state(&model, &solution, |_| [0.0; 3], |_| exact, [1e-15, 1e-9]);
            let model = resolved(comm, mesh, &free);
            let u = |x: [f64; 3]| x.map(|x| strain * x);
            assert_state(
                &model,
                &solved(comm, &model),
                u,
                |_| [0.0; 6],
                [1e-13, 1e-7],
            );
        });
    }
}

#[test]
fn a_linear_temperature_bends_a_free_block_without_stress() {
    // u = a g (x z, y z, (z^2 - x^2 - y^2) / 2) for T = g z.
    let (a, g) = (1e-5, 80.0);
    let keys = format!(
        "[[material]]\nname = \"steel\"\nyoung = 2e5\npoisson = 0.3\nexpansion = {a}\n{DETERMINATE}\
         [[temperature]]\non = \"all\"\nvalue = {{ value = 0, gradient = [0, 0, {g}] }}\n"
    );
    let u = |[x, y, z]: [f64; 3]| [x * z, y * z, 0.5 * (z * z - x * x - y * y)].map(|u| a * g * u);
    for cell_type in [CellType::Tet10, CellType::Hex20] {
        on_1_to_4_ranks(|comm| {
            let mut model = resolved(comm, mesh(comm, cell_type, [2; 3], |x| x), &keys);
            for (dof, value) in &mut model.fixed {
                *value = u(model.mesh.coords[*dof as usize / 3])[*dof as usize % 3];
            }
            assert_state(
                &model,
                &solved(comm, &model),
                u,
                |_| [0.0; 6],
                [1e-12, 1e-8],
            );
        });
    }
}

#[test]
fn a_bar_whose_modulus_falls_along_it() {
    // E falls from 2e5 to 1e5 with T along x: u(1) = s ln(E0 / E1) / (E0 - E1).
    let keys = "[[material]]\nname = \"steel\"\n\
        table = [{ temperature = 0, young = 2e5, poisson = 0.0 }, { temperature = 1000, young = 1e5, poisson = 0.0 }]\n\
        [[temperature]]\non = \"all\"\nvalue = { value = 0, gradient = [1000, 0, 0] }\n\
        [[constraint]]\non = \"xmin\"\ndisplacement = [0, 0, 0]\n[[load]]\non = \"xmax\"\ntraction = [60, 0, 0]\n";
    let exact = |x: f64| 60.0 * (2e5 / (2e5 - 1e5 * x)).ln() / 1e5;
    for (cell_type, tolerance) in [
        (CellType::Hex20, [1e-5, 0.01]),
        (CellType::Hex8, [1e-3, 0.06]),
    ] {
        on_1_to_4_ranks(|comm| {
            let model = resolved(comm, mesh(comm, cell_type, [10, 1, 1], |x| x), keys);
            let solution = solved(comm, &model);
            for (node, x) in model.mesh.coords.iter().enumerate() {
                let error = (solution.displacement[3 * node] - exact(x[0])).abs();
                assert!(
                    error <= tolerance[0] * exact(1.0),
                    "{cell_type}: {error} at {}",
                    x[0]
                );
                let stress = solution.tensors.stress_at(node, 0)[0];
                assert!((stress - 60.0).abs() < 60.0 * tolerance[1], "{stress}");
            }
        });
    }
}

#[test]
fn initial_stress_and_strain_relax_in_a_free_block_and_stay_in_a_held_one() {
    let steel = "[[material]]\nname = \"steel\"\nyoung = 200\npoisson = 0.25\n";
    let stressed = "[[load]]\non = \"all\"\ninitial_stress = [2, -1, 0.5, 0, 0, 0]\n";
    // The strain that takes the stress away: -(s - nu (others)) / E.
    let relaxed = [-(2.0 + 0.25 * 0.5), -(-1.0 - 0.25 * 2.5), -(0.5 - 0.25)].map(|e| e / 200.0);
    let strained = "[[load]]\non = \"all\"\ninitial_strain = [0.01, 0, 0, 0, 0, 0]\n";
    // lambda = mu = 80.
    let blocked = [-2.4, -0.8, -0.8, 0.0, 0.0, 0.0];
    for cell_type in CellType::SOLIDS {
        on_1_to_4_ranks(|comm| {
            let solved_block = |keys: &[&str]| {
                let model = resolved(
                    comm,
                    block(comm, cell_type),
                    &[&[steel][..], keys].concat().concat(),
                );
                let solution = solved(comm, &model);
                (model, solution)
            };
            let tight = [1e-13, 1e-11];
            let (model, free) = solved_block(&[stressed, DETERMINATE]);
            let u = |x: [f64; 3]| [0, 1, 2].map(|i| relaxed[i] * x[i]);
            assert_state(&model, &free, u, |_| [0.0; 6], tight);
            let (model, held) = solved_block(&[stressed, HELD]);
            let exact = [2.0, -1.0, 0.5, 0.0, 0.0, 0.0];
            assert_state(&model, &held, |_| [0.0; 3], |_| exact, tight);
            let (model, free) = solved_block(&[strained, DETERMINATE]);
            assert_state(
                &model,
                &free,
                |x| [0.01 * x[0], 0.0, 0.0],
                |_| [0.0; 6],
                tight,
            );
            assert!(free.totals.strain_energy.abs() < 1e-15);
            let (model, held) = solved_block(&[strained, HELD]);
            assert_state(&model, &held, |_| [0.0; 3], |_| blocked, tight);
        });
    }
}

#[test]
fn a_hot_core_in_a_cold_body() {
    // Plane strain, as NAFEMS T1: u = c r inside and c / r outside with c = (1 + nu) a T / (2 (1 - nu)).
    let (young, poisson, heat) = (1e5, 0.3, 1e-3);
    let c = (1.0 + poisson) * heat / (2.0 * (1.0 - poisson));
    let exact = |r: f64| if r < 1.0 { c * r } else { c / r };
    let material = |name| {
        format!(
            "[[material]]\nname = \"{name}\"\nelements = \"{name}\"\nyoung = {young}\npoisson = {poisson}\n"
        )
    };
    let keys = [
        material("core"),
        "expansion = 1e-5\n".to_owned(),
        material("body"),
        QUARTER.to_owned(),
        "[[load]]\non = \"core\"\ntemperature_change = 100\n".to_owned(),
    ]
    .concat();
    let radius = |s: f64| {
        if s <= 0.375 {
            0.2 * 5.0f64.powf(s / 0.375)
        } else {
            10.0f64.powf((s - 0.375) / 0.625)
        }
    };
    on_1_to_4_ranks(|comm| {
        let mut mesh = ring(comm, [16, 12, 1], radius);
        let far = |x: [f64; 3]| x[0].hypot(x[1]);
        let is_core = |cell: &u32| {
            let nodes = mesh.cells.nodes_of(*cell as usize).iter();
            nodes
                .map(|&n| far(mesh.coords[n as usize]))
                .fold(0.0, f64::max)
                < 1.0 + 1e-9
        };
        let (core, body) = (0..mesh.n_cells() as u32).partition(is_core);
        mesh.sets.cells.insert("core".to_owned(), core);
        mesh.sets.cells.insert("body".to_owned(), body);
        let mut model = resolved(comm, mesh, &keys);
        // The exact displacement on the inner and outer face.
        for (node, x) in model.mesh.coords.iter().enumerate() {
            let r = far(*x);
            if !(0.2 + 1e-9..=10.0 - 1e-9).contains(&r) {
                for i in 0..2 {
                    model
                        .fixed
                        .push(((3 * node + i) as u32, exact(r) * x[i] / r));
                }
            }
        }
        model.fixed.sort_by_key(|(dof, _)| *dof);
        model.fixed.dedup_by_key(|(dof, _)| *dof);
        let solution = solved(comm, &model);
        for (node, &x) in model.mesh.coords.iter().enumerate() {
            let r = far(x);
            let found = (0..2)
                .map(|i| solution.displacement[3 * node + i] * x[i] / r)
                .sum::<f64>();
            assert!(
                (found - exact(r)).abs() < 1e-4 * c,
                "{found} for {} at {r}",
                exact(r)
            );
            if solution.tensors.materials_of(node) == [1] && r < 3.0 {
                let hoop = polar(x, solution.tensors.stress_at(node, 1))[1];
                let expected = young * heat / (2.0 * (1.0 - poisson)) / (r * r);
                assert!(
                    (hoop - expected).abs() < 0.02 * 71.43,
                    "{hoop} for {expected} at {r}"
                );
            }
        }
    });
}
