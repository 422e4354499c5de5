//! Constraints from the case file to the solution: ties, cyclic symmetry, local axes, and what multigrid makes of them.
//!
//! Invariant: small models, each on 1 to 4 ranks.

use crate::analysis::linear_static::{Solution, solve};
use crate::input::{RawMesh, distribute_mesh};
use crate::links::free_groups;
use crate::log::Log;
use crate::model::Model;
use crate::resolve::resolve;
use fem_io::case::{self, Case};
use fem_mesh::comm::run_threads;
use fem_mesh::generate::{BoxMesh, generate_slice};
use fem_mesh::{CellFace, CellType, Comm, Halo, Mesh, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

pub(super) fn brick(
    size: [f64; 3],
    cells: [usize; 3],
    cell_type: CellType,
    origin: [f64; 3],
) -> Mesh {
    let spec = BoxMesh {
        size,
        cells,
        cell_type,
        origin,
    };
    generate_slice(&spec, &Comm::alone(), None).unwrap()
}

/// Meshes side by side that share no node; sets of the k-th get the prefix "a_", "b_", ...
pub(super) fn side_by_side(parts: Vec<Mesh>) -> Mesh {
    let mut whole = Mesh::default();
    let mut all = Vec::new();
    for (part, prefix) in parts.into_iter().zip(["a_", "b_", "c_"]) {
        let (node, cell) = (whole.n_nodes() as u32, whole.n_cells() as u32);
        for c in 0..part.n_cells() {
            let nodes: Vec<u32> = part.cells.nodes_of(c).iter().map(|n| n + node).collect();
            whole.cells.push(part.cells.types[c], &nodes);
            whole.cell_ids.push(u64::from(cell) + c as u64 + 1);
            all.push(cell + c as u32);
        }
        whole.coords.extend(&part.coords);
        for (name, faces) in part.sets.faces {
            let faces = faces.iter().map(|f| CellFace {
                cell: f.cell + cell,
                ..*f
            });
            whole
                .sets
                .faces
                .insert(format!("{prefix}{name}"), faces.collect());
        }
        for (name, nodes) in part.sets.nodes {
            whole.sets.nodes.insert(
                format!("{prefix}{name}"),
                nodes.iter().map(|n| n + node).collect(),
            );
        }
    }
    whole.node_ids = (1..=whole.n_nodes() as u64).collect();
    whole.sets.cells.insert("all".to_owned(), all);
    whole
}

/// A solution by node numbers of the input, the same on every rank.
pub(super) struct Found {
    pub(super) place: BTreeMap<u64, [f64; 3]>,
    pub(super) u: BTreeMap<u64, [f64; 3]>,
    pub(super) reaction: BTreeMap<u64, [f64; 3]>,
    pub(super) constraint_force: BTreeMap<u64, [f64; 3]>,
    stress: BTreeMap<u64, [f64; 6]>,
    pub(super) solution: Solution,
    warnings: Vec<String>,
}

pub(super) fn parse(text: &str) -> Case {
    let material =
        "[mesh]\nfile = \"made.msh\"\n[[material]]\nname = \"m\"\nyoung = 1000.0\ndensity = 2.0\n";
    let poisson = if text.contains("poisson = ") {
        ""
    } else {
        "poisson = 0.3\n"
    };
    let (first, rest) = text.split_once('\n').unwrap();
    let text = format!("{material}{poisson}{first}\n{rest}\n[solver]\ntolerance = 1e-12\n");
    case::parse(Path::new("case.toml"), &text).unwrap()
}

pub(super) fn model_of(comm: &Comm, mesh: &Mesh, case: &Case) -> Result<(Model, Vec<String>)> {
    let mesh = if comm.is_root() {
        mesh.clone()
    } else {
        Mesh::default()
    };
    let (mesh, _) = distribute_mesh(comm, case, RawMesh::of(mesh))?;
    let resolved = resolve(comm, case, mesh)?;
    Ok((resolved.model, resolved.warnings))
}

fn solve_case(comm: &Comm, mesh: &Mesh, case: &Case) -> Found {
    let (model, warnings) = model_of(comm, mesh, case).unwrap();
    let halo = Halo::new(comm, &model.mesh.nodes);
    assert_eq!(free_groups(comm, &model, &halo), []);
    let mut log = Log::new(false);
    let solution = solve(comm, &model, &halo, &case.solver, &mut log).unwrap();
    assert!(
        solution.totals.balance_error < 1e-8,
        "{:?}",
        solution.totals
    );
    let n = model.mesh.nodes.n_owned();
    let ids = comm.all_gather(&model.mesh.node_ids[..n]).concat();
    let by_id = |values: &[f64]| -> BTreeMap<u64, [f64; 3]> {
        let values = comm.all_gather(&values[..3 * n]).concat();
        ids.iter()
            .copied()
            .zip(values.as_chunks::<3>().0.iter().copied())
            .collect()
    };
    // Without any constraint there is none.
    let mut constraint_force = solution.constraint_force.clone();
    constraint_force.resize(solution.displacement.len(), 0.0);
    let of_node = |node: usize| match solution.tensors.materials_of(node) {
        [] => [0.0; 6],
        materials => solution.tensors.stress_at(node, materials[0]),
    };
    let stress: Vec<[f64; 6]> = (0..n).map(of_node).collect();
    let stress = comm.all_gather(&stress).concat();
    Found {
        place: by_id(model.mesh.coords.as_flattened()),
        u: by_id(&solution.displacement),
        reaction: by_id(&solution.reaction),
        constraint_force: by_id(&constraint_force),
        stress: ids.iter().copied().zip(stress).collect(),
        solution,
        warnings,
    }
}

/// Runs `check` on the solution on 1 to 4 ranks.
pub(super) fn on_ranks(mesh: &Mesh, text: &str, check: impl Fn(&Found) + Sync) {
    let case = parse(text);
    for n_ranks in 1..=4 {
        run_threads(n_ranks, |comm| check(&solve_case(comm, mesh, &case)));
    }
}

pub(super) fn assert_near(a: [f64; 3], b: [f64; 3], tolerance: f64, what: &str) {
    for i in 0..3 {
        assert!(
            (a[i] - b[i]).abs() <= tolerance,
            "{what}: {a:?} is not {b:?}"
        );
    }
}

/// Rollers on three planes and traction 10 along x: stress 10, nothing else.
const PULL: &str = "
[[constraint]]
on = \"a_xmin\"
displacement = [0.0, \"free\", \"free\"]
[[constraint]]
on = [\"a_ymin\", \"b_ymin\"]
displacement = [\"free\", 0.0, \"free\"]
[[constraint]]
on = [\"a_zmin\", \"b_zmin\"]
displacement = [\"free\", \"free\", 0.0]
[[load]]
on = \"b_xmax\"
traction = [10.0, 0.0, 0.0]
";

/// Two bars of 2 x 1 x 1 end to end; the second begins `gap` later.
fn two_bars(cells: [[usize; 3]; 2], cell_type: CellType, gap: f64) -> Mesh {
    let a = brick([2.0, 1.0, 1.0], cells[0], cell_type, [0.0; 3]);
    let b = brick([2.0, 1.0, 1.0], cells[1], cell_type, [2.0 + gap, 0.0, 0.0]);
    side_by_side(vec![a, b])
}

/// Largest error of the stress of [`PULL`], relative to it.
fn stress_error(found: &Found) -> f64 {
    let expected = [10.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let errors = found
        .stress
        .values()
        .flat_map(|s| (0..6).map(|k| (s[k] - expected[k]).abs()));
    errors.fold(0.0, f64::max) / 10.0
}

#[test]
fn a_tie_of_matching_or_nested_meshes_passes_constant_stress_on_exactly() {
    let tie = format!("[[tie]]\nslave = \"b_xmin\"\nmaster = \"a_xmax\"\n{PULL}");
    for (cells, cell_type) in [
        ([[2, 2, 2], [3, 2, 2]], CellType::Hex8),
        ([[2, 2, 2], [3, 4, 6]], CellType::Hex8),
        ([[1, 2, 1], [1, 2, 1]], CellType::Hex20),
        ([[1, 2, 1], [1, 2, 1]], CellType::Tet10),
    ] {
        on_ranks(&two_bars(cells, cell_type, 0.0), &tie, |found| {
            let error = stress_error(found);
            assert!(error < 1e-8, "{cell_type} {cells:?}: {error}");
            // On the rollers both sides are held.
            let dropped = found
                .warnings
                .iter()
                .filter(|w| w.contains("follow from others"));
            assert_eq!(dropped.count(), 1, "{:?}", found.warnings);
            for (id, x) in &found.place {
                let expected = [0.01 * x[0], -0.003 * x[1], -0.003 * x[2]];
                assert_near(found.u[id], expected, 1e-10, "displacement");
            }
        });
    }
}

#[test]
fn a_tie_of_any_meshes_passes_constant_stress_on_nearly() {
    let tie = format!("[[tie]]\nslave = \"b_xmin\"\nmaster = \"a_xmax\"\n{PULL}");
    for (cells, cell_type, tolerance) in [
        ([[3, 2, 2], [4, 3, 3]], CellType::Hex8, 0.25),
        ([[3, 3, 3], [4, 2, 2]], CellType::Hex8, 0.8),
        ([[2, 2, 2], [2, 3, 3]], CellType::Hex20, 0.25),
    ] {
        on_ranks(&two_bars(cells, cell_type, 0.0), &tie, |found| {
            let error = stress_error(found);
            assert!(
                error > 1e-6 && error < tolerance,
                "{cell_type} {cells:?}: {error}"
            );
        });
    }
}

#[test]
fn a_tie_closes_a_gap_only_if_it_may() {
    let mesh = two_bars([[2, 2, 2], [2, 2, 2]], CellType::Hex8, 0.01);
    let tie =
        |more: &str| format!("[[tie]]\nslave = \"b_xmin\"\nmaster = \"a_xmax\"\n{more}\n{PULL}");
    on_ranks(&mesh, &tie("position_tolerance = 0.02"), |found| {
        assert!(found.place.values().all(|x| x[0] != 2.01));
        assert!(stress_error(found) < 1e-8);
    });
    on_ranks(
        &mesh,
        &tie("position_tolerance = 0.02\nadjust = false"),
        |found| {
            assert!(found.place.values().any(|x| x[0] == 2.01));
            // Both bars are stretched alike, whatever is between.
            assert!(stress_error(found) < 1e-8);
        },
    );
    let case = parse(&tie("position_tolerance = 0.005"));
    run_threads(2, |comm| {
        let error = model_of(comm, &mesh, &case).unwrap_err().to_string();
        assert!(
            error.contains("no slave node of the [[tie]] is within 5.000e-3"),
            "{error}"
        );
    });
}

/// A mesh turned about z by `angle` about the origin.
fn turned(mesh: &Mesh, angle: f64) -> Mesh {
    let (s, c) = angle.sin_cos();
    let mut mesh = mesh.clone();
    for x in &mut mesh.coords {
        *x = [c * x[0] - s * x[1], s * x[0] + c * x[1], x[2]];
    }
    mesh
}

#[test]
fn a_model_with_local_systems_is_the_model_turned() {
    let straight = side_by_side(vec![brick(
        [3.0, 1.0, 1.0],
        [3, 2, 2],
        CellType::Hex8,
        [0.0; 3],
    )]);
    let supports = "
[[constraint]]
on = \"a_xmin\"
displacement = [0.0, \"free\", \"free\"]
[[constraint]]
on = \"a_ymin\"
displacement = [\"free\", 0.001, \"free\"]
[[constraint]]
on = \"a_zmin\"
displacement = [\"free\", \"free\", 0.0]
[[set]]
name = \"corner\"
nodes_in_box = { min = [MIN], max = [MAX] }
[[load]]
on = \"corner\"
force = [1.0, 0.5, 0.25]
";
    let angle = 0.4_f64;
    let (s, c) = angle.sin_cos();
    let corner = |x: [f64; 3]| {
        let text = |d: f64| x.map(|v| (v + d).to_string()).join(", ");
        supports
            .replace("MIN", &text(-1e-6))
            .replace("MAX", &text(1e-6))
    };
    let plain = parse(&corner([3.0, 1.0, 1.0]));
    let tip = [3.0 * c - s, 3.0 * s + c, 1.0];
    let local = format!(
        "[[transform]]\non = \"all\"\nkind = \"rectangular\"\na = [{c}, {s}, 0.0]\nb = [{}, {c}, 0.0]\n{}",
        -s,
        corner(tip)
    );
    let expected = Mutex::new(None);
    run_threads(1, |comm| {
        let found = solve_case(comm, &straight, &plain);
        *expected.lock().unwrap() = Some((found.u, found.reaction));
    });
    let (u, reaction) = expected.into_inner().unwrap().unwrap();
    on_ranks(&turned(&straight, angle), &local, |found| {
        let turn = |v: [f64; 3]| [c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]];
        for (id, value) in &u {
            assert_near(found.u[id], turn(*value), 1e-9, "displacement");
            assert_near(found.reaction[id], turn(reaction[id]), 1e-7, "reaction");
        }
    });
}

/// A ring of `n` bricks around, from radius 1 to 2, or a sector of it; nodes on the borders of the sector are those of
/// the sets "low" and "high".
fn ring(n: usize, around: usize) -> Mesh {
    let (n_radial, is_closed) = (3, n == around);
    let columns = if is_closed { n } else { n + 1 };
    let mut mesh = Mesh::default();
    let node =
        |i: usize, j: usize, k: usize| ((k * columns + j % columns) * (n_radial + 1) + i) as u32;
    for k in 0..2 {
        for j in 0..columns {
            for i in 0..=n_radial {
                let r = 1.0 + i as f64 / n_radial as f64;
                let phi = std::f64::consts::TAU * j as f64 / around as f64;
                mesh.coords
                    .push([r * phi.cos(), r * phi.sin(), 0.3 * k as f64]);
            }
        }
    }
    for j in 0..n {
        for i in 0..n_radial {
            let ring = |k: usize| {
                [
                    node(i, j, k),
                    node(i + 1, j, k),
                    node(i + 1, j + 1, k),
                    node(i, j + 1, k),
                ]
            };
            mesh.cells
                .push(CellType::Hex8, &[ring(0), ring(1)].concat());
        }
    }
    let n_nodes = mesh.n_nodes() as u32;
    mesh.node_ids = (1..=u64::from(n_nodes)).collect();
    mesh.cell_ids = (1..=mesh.n_cells() as u64).collect();
    mesh.sets
        .cells
        .insert("all".to_owned(), (0..mesh.n_cells() as u32).collect());
    mesh.sets
        .nodes
        .insert("bottom".to_owned(), (0..n_nodes / 2).collect());
    let inner = (0..n_nodes).filter(|node| node % (n_radial as u32 + 1) == 0);
    mesh.sets.nodes.insert("inner".to_owned(), inner.collect());
    let faces = |cells: std::ops::Range<usize>, face: u8| {
        cells
            .map(|c| CellFace {
                cell: c as u32,
                face,
            })
            .collect()
    };
    mesh.sets
        .faces
        .insert("low".to_owned(), faces(0..n_radial, 2));
    mesh.sets.faces.insert(
        "high".to_owned(),
        faces((n - 1) * n_radial..n * n_radial, 4),
    );
    mesh
}

#[test]
fn a_sector_of_a_rotating_ring_deforms_as_the_whole() {
    let text = "
[[transform]]
on = \"inner\"
kind = \"cylindrical\"
a = [0.0, 0.0, 0.0]
b = [0.0, 0.0, 1.0]
[[constraint]]
on = \"bottom\"
displacement = [\"free\", \"free\", 0.0]
[[constraint]]
on = \"inner\"
displacement = [\"free\", 0.0, \"free\"]
[[load]]
on = \"all\"
centrifugal = { axis = [0, 0, 1], omega = 3.0 }
";
    let whole = Mutex::new(None);
    run_threads(1, |comm| {
        let found = solve_case(comm, &ring(24, 24), &parse(text));
        *whole.lock().unwrap() = Some((found.place, found.u));
    });
    let (place, u) = whole.into_inner().unwrap().unwrap();
    for slave in ["low", "high"] {
        let master = if slave == "low" { "high" } else { "low" };
        let cyclic = format!(
            "[[cyclic_symmetry]]\nslave = \"{slave}\"\nmaster = \"{master}\"\naxis = [0, 0, 2]\nn_sectors = 12\n{text}"
        );
        on_ranks(&ring(2, 24), &cyclic, |found| {
            for (id, x) in &found.place {
                let same = place
                    .iter()
                    .find(|(_, y)| (0..3).all(|i| (x[i] - y[i]).abs() < 1e-9));
                let (other, _) = same.expect("a node of the whole");
                assert_near(found.u[id], u[other], 1e-9, "displacement");
            }
            let radial = found.u[&1][0];
            assert!(radial > 1e-3, "the ring widens: {radial}");
        });
    }
}

#[test]
fn tied_parts_are_held_and_hinges_are_found() {
    let mesh = two_bars([[2, 2, 2], [2, 2, 2]], CellType::Hex8, 0.0);
    let clamped = "[[constraint]]\non = \"a_xmin\"\ndisplacement = [0.0, 0.0, 0.0]\n[[load]]\non = \"b_xmax\"\ntraction = [0.0, 0.0, 1.0]\n";
    let motions = |text: String| {
        let found = Mutex::new(Vec::new());
        let case = parse(&format!("\n{text}"));
        for n_ranks in 1..=3 {
            run_threads(n_ranks, |comm| {
                let (model, _) = model_of(comm, &mesh, &case).unwrap();
                let halo = Halo::new(comm, &model.mesh.nodes);
                let free = free_groups(comm, &model, &halo);
                let names: Vec<String> = free.into_iter().flat_map(|body| body.motions).collect();
                found.lock().unwrap().push(names);
            });
        }
        let found = found.into_inner().unwrap();
        assert!(found.iter().all(|names| *names == found[0]));
        found[0].clone()
    };
    let tie = "[[tie]]\nslave = \"b_xmin\"\nmaster = \"a_xmax\"\n";
    assert_eq!(motions(format!("{tie}{clamped}")), [] as [&str; 0]);
    // A hinge: the edge z = 0 of the second bar follows that of the first.
    let edges = "
[[set]]
name = \"edge\"
nodes_in_box = { min = [2.0, 0.0, 0.0], max = [2.0, 1.0, 0.0] }
[[tie]]
slave = \"edge\"
master = \"a_xmax\"
position_tolerance = 1e-3
";
    // The edge holds nodes of both bars; those of the first are nodes of the face itself.
    assert_eq!(motions(format!("{edges}{clamped}")), ["rotation about y"]);
}

/// Iterations of a cube of `n`^3 elements and of the same cube tied of two halves, with equations between opposite
/// sides, and with a rigid end.
fn iterations(n: usize, n_ranks: usize) -> [usize; 4] {
    let whole = side_by_side(vec![brick([1.0; 3], [n; 3], CellType::Hex8, [0.0; 3])]);
    let half = |x: f64| {
        brick(
            [0.5, 1.0, 1.0],
            [n / 2, n, n],
            CellType::Hex8,
            [x, 0.0, 0.0],
        )
    };
    let halves = side_by_side(vec![half(0.0), half(0.5)]);
    let held = "[[constraint]]\non = \"a_xmin\"\ndisplacement = [0.0, 0.0, 0.0]\n[[load]]\non = \"END\"\ntraction = [1.0, 0.0, 3.0]\n";
    let plain = held.replace("END", "a_xmax");
    let sides: String = (["ymin", "ymax"].iter().zip([0, 1]))
        .map(|(name, y)| format!("[[set]]\nname = \"{name}\"\nnodes_in_box = {{ min = [0.01, {y}, 0], max = [1, {y}, 1] }}\n"))
        .collect();
    let equation = |component: &str| {
        format!(
            "[[equation]]\nterms = [{{ node = \"ymax\", component = \"{component}\" }}, {{ node = \"ymin\", component = \"{component}\", coefficient = -1.0 }}]\n"
        )
    };
    let laden = format!(
        "{}{}{}{sides}{plain}",
        equation("x"),
        equation("y"),
        equation("z")
    );
    let tied = format!(
        "[[tie]]\nslave = \"b_xmin\"\nmaster = \"a_xmax\"\n{}",
        held.replace("END", "b_xmax")
    );
    let rigid = format!(
        "[[node]]\nnumber = 900000\nat = [1.0, 0.5, 0.5]\n[[rigid_body]]\nreference = 900000\non = \"a_xmax\"\n{plain}"
    );
    let models = [
        (&whole, plain),
        (&halves, tied),
        (&whole, laden),
        (&whole, rigid),
    ];
    models.map(|(mesh, text)| {
        let mut case = parse(&format!("\n{text}"));
        case.solver.method = case::Method::Cg;
        case.solver.tolerance = 1e-8;
        let n = Mutex::new(0);
        run_threads(n_ranks, |comm| {
            let found = solve_case(comm, mesh, &case);
            *n.lock().unwrap() = found.solution.solved.report.iterations;
        });
        n.into_inner().unwrap()
    })
}

fn assert_speed_kept(n: usize, n_ranks: usize) {
    let [plain, others @ ..] = iterations(n, n_ranks);
    eprintln!("{n}^3 on {n_ranks} ranks: plain {plain}, tied, laden, rigid {others:?}");
    for other in others {
        assert!(
            other as f64 <= 1.3 * plain as f64,
            "{plain}: {others:?} on {n_ranks}"
        );
    }
}

#[test]
fn multigrid_keeps_its_speed() {
    assert_speed_kept(10, 1);
    assert_speed_kept(10, 3);
}

#[test]
#[ignore = "takes minutes without optimization"]
fn multigrid_keeps_its_speed_in_a_larger_cube() {
    assert_speed_kept(24, 1);
    assert_speed_kept(24, 2);
}
