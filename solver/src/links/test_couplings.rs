//! Couplings, rigid bodies, equations and multi-point constraints against closed forms; what contradicts is named.
//!
//! Invariant: small models, each on 1 to 4 ranks.

use super::ROTATION_ID;
use super::test_links::{Found, assert_near, brick, model_of, on_ranks, parse, side_by_side};
use fem_mesh::comm::run_threads;
use fem_mesh::{CellType, Mesh};

/// A bar of 4 x 1 x 1 clamped at x = 0 whose other end hangs on a reference node; Poisson's ratio 0, so that bending with a
/// plane end is exact in elements of second order: rotation M L / (E I), deflection its half times L.
fn bent_bar(coupling: &str, at: [f64; 3], load: &str) -> (Mesh, String) {
    let mesh = side_by_side(vec![brick(
        [4.0, 1.0, 1.0],
        [3, 2, 2],
        CellType::Hex20,
        [0.0; 3],
    )]);
    let text = format!(
        "poisson = 0.0
[[node]]
number = 5000
at = {at:?}
name = \"tip\"
{coupling}
reference = \"tip\"
on = \"a_xmax\"
[[constraint]]
on = \"a_xmin\"
displacement = [0.0, 0.0, 0.0]
{load}"
    );
    (mesh, text)
}

#[test]
fn a_moment_on_a_rigid_or_distributing_end_bends_the_bar_as_a_beam() {
    let moment = 0.7;
    let load = format!("[[load]]\non = \"tip\"\nmoment = [0.0, {moment}, 0.0]");
    let rotation = moment * 4.0 / (1000.0 / 12.0);
    // The forces of a distributing coupling are those of the beam but for their spread over the elements of the end.
    for (coupling, exact) in [
        ("[[coupling]]\nkind = \"kinematic\"", 1e-9),
        (
            "[[coupling]]\nkind = \"distributing\"",
            0.03 * 2.0 * rotation,
        ),
        ("[[rigid_body]]", 1e-9),
    ] {
        // At the middle of the end, and beside it.
        for at in [[4.0, 0.5, 0.5], [4.5, 1.0, 2.5]] {
            let (mesh, text) = bent_bar(coupling, at, &load);
            on_ranks(&mesh, &text, |found| {
                let turned = found.u[&(ROTATION_ID + 5000)];
                assert_near(turned, [0.0, rotation, 0.0], exact, coupling);
                let tip = [
                    rotation * (at[2] - 0.5),
                    0.0,
                    -rotation * (at[0] - 4.0) - 0.5 * rotation * 4.0,
                ];
                assert_near(found.u[&5000], tip, exact, coupling);
                for (id, x) in found.place.iter().filter(|(id, _)| **id < 5000) {
                    let kappa = rotation / 4.0;
                    let expected = [kappa * x[0] * (x[2] - 0.5), 0.0, -0.5 * kappa * x[0] * x[0]];
                    assert_near(found.u[id], expected, exact, coupling);
                }
            });
        }
    }
}

#[test]
fn a_prescribed_rotation_needs_the_moment_of_the_beam() {
    let load = "[[constraint]]\non = \"tip\"\nrotation = [\"free\", 0.02, \"free\"]";
    let expected = 0.02 * 1000.0 / 12.0 / 4.0;
    for (coupling, tolerance) in [
        ("[[coupling]]\nkind = \"kinematic\"", 1e-8),
        ("[[coupling]]\nkind = \"distributing\"", 0.03 * expected),
    ] {
        let (mesh, text) = bent_bar(coupling, [4.0, 0.5, 0.5], load);
        on_ranks(&mesh, &text, |found| {
            let moment = found.reaction[&(ROTATION_ID + 5000)];
            assert_near(moment, [0.0, expected, 0.0], tolerance, coupling);
        });
    }
}

#[test]
fn forces_and_moments_of_a_reference_arrive_whole() {
    let (at, force, moment) = ([5.0, -1.0, 2.0], [1.0, -2.0, 0.5], [0.3, -0.4, 0.9]);
    let load = format!(
        "[[load]]\non = \"tip\"\nforce = {force:?}\n[[load]]\non = \"tip\"\nmoment = {moment:?}"
    );
    for coupling in [
        "[[coupling]]\nkind = \"kinematic\"",
        "[[coupling]]\nkind = \"distributing\"",
        "[[rigid_body]]",
    ] {
        let (mesh, text) = bent_bar(coupling, at, &load);
        on_ranks(&mesh, &text, |found| {
            let mut sum = [0.0; 3];
            let mut turn = [0.0; 3];
            for (id, r) in found.reaction.iter().filter(|(id, _)| **id < 5000) {
                let x = found.place[id];
                for i in 0..3 {
                    let (j, k) = ((i + 1) % 3, (i + 2) % 3);
                    sum[i] -= r[i];
                    turn[i] -= x[j] * r[k] - x[k] * r[j];
                }
            }
            assert_near(sum, force, 1e-8, coupling);
            let passed = found.constraint_force.iter().filter(|(id, _)| **id < 5000);
            let passed = passed.fold([0.0; 3], |sum, (_, f)| [0, 1, 2].map(|i| sum[i] + f[i]));
            assert_near(passed, force, 1e-8, coupling);
            let at_tip = found.constraint_force[&5000].map(|f| -f);
            assert_near(at_tip, force, 1e-8, coupling);
            let about_origin = [0, 1, 2].map(|i| {
                let (j, k) = ((i + 1) % 3, (i + 2) % 3);
                moment[i] + at[j] * force[k] - at[k] * force[j]
            });
            assert_near(turn, about_origin, 1e-7, coupling);
            for i in 0..3 {
                assert!((found.solution.totals.load_sum[i] - force[i]).abs() < 1e-12);
            }
        });
    }
}

#[test]
fn equations_by_number_set_and_constant_hold() {
    let mesh = side_by_side(vec![brick(
        [2.0, 1.0, 1.0],
        [2, 2, 2],
        CellType::Hex8,
        [0.0; 3],
    )]);
    let text = "
[[equation]]
terms = [{ node = 3, component = \"x\" }, { node = 12, component = \"y\", coefficient = -2.0 }, { node = 21, component = \"z\" }]
constant = 0.05
[[equation]]
terms = [{ node = 12, component = \"y\" }, { node = 27, component = \"y\", coefficient = -1.0 }]
[[equation]]
terms = [{ node = \"end\", component = \"z\" }, { node = 15, component = \"z\", coefficient = -1.0 }]
[[set]]
name = \"end\"
nodes_in_box = { min = [2.0, 0.0, 0.0], max = [2.0, 1.0, 0.0] }
[[constraint]]
on = \"a_xmin\"
displacement = [0.0, 0.0, 0.0]
[[load]]
on = \"end\"
force = [0.0, 0.0, 1.0]
";
    on_ranks(&mesh, text, |found| {
        let u = |id: u64| found.u[&id];
        assert!((u(3)[0] - 2.0 * u(12)[1] + u(21)[2] - 0.05).abs() < 1e-10);
        assert!((u(12)[1] - u(27)[1]).abs() < 1e-12);
        for id in [3, 6, 9] {
            assert!((u(id)[2] - u(15)[2]).abs() < 1e-12);
        }
        // 2 y - z is held against the ground.
        assert!(found.solution.totals.constraint_sum.is_some());
    });
}

#[test]
fn points_stay_in_their_plane_on_their_line_and_at_their_distance() {
    let mesh = side_by_side(vec![brick(
        [2.0, 1.0, 1.0],
        [2, 2, 2],
        CellType::Hex8,
        [0.0; 3],
    )]);
    let held = "[[constraint]]\non = \"a_xmin\"\ndisplacement = [0.0, 0.0, 0.0]\n[[load]]\non = \"a_ymax\"\ntraction = [3.0, 1.0, 2.0]\n";
    // The end x = 2 has the nodes 3, 6, ..., 27.
    let normal = |found: &Found, ids: [u64; 4]| {
        let x = ids.map(|id| nalgebra::Vector3::from(found.place[&id]));
        let u = ids.map(|id| nalgebra::Vector3::from(found.u[&id]));
        let volume = |k: usize| {
            let mut edges = [1, 2, 3].map(|i| x[i] - x[0]);
            edges[k] = u[k + 1] - u[0];
            edges[0].cross(&edges[1]).dot(&edges[2])
        };
        (0..3).map(volume).sum::<f64>()
    };
    on_ranks(
        &mesh,
        &format!("[[mpc]]\nkind = \"plane\"\nnodes = [3, 9, 21, 27, 15]\n{held}"),
        |found| {
            assert!(normal(found, [3, 9, 21, 27]).abs() < 1e-10);
            assert!(normal(found, [3, 9, 21, 15]).abs() < 1e-10);
        },
    );
    on_ranks(
        &mesh,
        &format!("[[mpc]]\nkind = \"straight\"\nnodes = [3, 27, 15]\n{held}"),
        |found| {
            let middle = [0, 1, 2].map(|i| 0.5 * (found.u[&3][i] + found.u[&27][i]));
            let off = [0, 1, 2].map(|i| found.u[&15][i] - middle[i]);
            assert!(off[0].abs() < 1e-11 && (off[1] - off[2]).abs() < 1e-11);
        },
    );
    on_ranks(
        &mesh,
        &format!("[[mpc]]\nkind = \"beam\"\nnodes = [3, 27]\n{held}"),
        |found| {
            let stretch: f64 = (1..3).map(|i| found.u[&27][i] - found.u[&3][i]).sum();
            assert!(stretch.abs() < 1e-11, "{stretch}");
        },
    );
}

#[test]
fn contradictions_and_mistakes_are_named() {
    let mesh = side_by_side(vec![brick(
        [2.0, 1.0, 1.0],
        [2, 2, 2],
        CellType::Hex8,
        [0.0; 3],
    )]);
    let held = "[[constraint]]\non = \"a_xmin\"\ndisplacement = [0.0, 0.0, 0.0]\n";
    let equation = |terms: &str, constant: f64| {
        format!("[[equation]]\nterms = [{terms}]\nconstant = {constant}\n")
    };
    let twice = format!(
        "{}{}{held}",
        equation(
            "{ node = 3, component = \"x\" }, { node = 6, component = \"x\" }",
            0.0
        ),
        equation(
            "{ node = 3, component = \"x\" }, { node = 6, component = \"x\" }",
            1.0
        )
    );
    for (text, expected) in [
        (
            twice,
            "an equation of the [[equation]] at node 3 contradicts other constraints",
        ),
        (
            format!("{}{held}", equation("{ node = 1, component = \"x\" }", 0.5)),
            "at node 1 contradicts",
        ),
        (
            format!(
                "{}{held}",
                equation("{ node = 99, component = \"x\" }", 0.0)
            ),
            "there is no node 99",
        ),
        (
            format!(
                "{}{held}",
                equation("{ node = 3, component = \"rx\" }", 0.0)
            ),
            "node 3 has no rotation",
        ),
        (
            format!("[[load]]\non = \"a_xmax\"\nforce = [1, 0, 0]\n[[node]]\nnumber = 7\n{held}"),
            "the mesh has no node 7 in no element",
        ),
        (
            format!(
                "[[node]]\nnumber = 700\nat = [0, 0, 0]\nname = \"far\"\n[[load]]\non = \"far\"\nforce = [1, 0, 0]\n{held}"
            ),
            "a load acts on node 700, which is in no element",
        ),
    ] {
        let case = parse(&format!("\n{text}"));
        for n_ranks in [1, 3] {
            run_threads(n_ranks, |comm| {
                let error = model_of(comm, &mesh, &case).unwrap_err().to_string();
                assert!(error.contains(expected), "{error}");
            });
        }
    }
}
