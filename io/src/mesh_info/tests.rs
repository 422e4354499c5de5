//! Tests of the description of meshes.

use super::{SetKind, describe};
use fem_mesh::{CellType, Mesh};

/// Corners of the reference shapes, on which mid nodes are added.
fn corners(cell_type: CellType) -> Vec<[f64; 3]> {
    let flat: &[[f64; 2]] = match cell_type {
        t if matches!(t.n_corners(), 4 | 6) => &[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
        _ => &[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]],
    };
    let mut points: Vec<[f64; 3]> = flat.iter().map(|p| [p[0], p[1], 0.0]).collect();
    if matches!(cell_type, CellType::Tet4 | CellType::Tet10) {
        points.push([0.0, 0.0, 1.0]);
    } else if cell_type.n_corners() == 5 {
        points.push([0.5, 0.5, 1.0]);
    } else {
        points.extend(flat.iter().map(|p| [p[0], p[1], 1.0]));
    }
    points
}

/// One cell whose nodes are moved by `map`.
fn one_cell(cell_type: CellType, map: impl Fn([f64; 3]) -> [f64; 3]) -> Mesh {
    let mut points = corners(cell_type);
    if cell_type.order() == 2 {
        for &[a, b] in cell_type.edges() {
            let [a, b] = [points[usize::from(a)], points[usize::from(b)]];
            points.push(std::array::from_fn(|axis| (a[axis] + b[axis]) / 2.0));
        }
    }
    for around in cell_type.inner_nodes() {
        let sum = |axis: usize| {
            around
                .iter()
                .map(|&k| points[usize::from(k)][axis])
                .sum::<f64>()
        };
        points.push(std::array::from_fn(|axis| sum(axis) / around.len() as f64));
    }
    let mut mesh = Mesh {
        coords: points.into_iter().map(map).collect(),
        ..Mesh::default()
    };
    let nodes: Vec<u32> = (0..mesh.n_nodes() as u32).collect();
    mesh.cells.push(cell_type, &nodes);
    mesh
}

fn reference_volume(cell_type: CellType) -> f64 {
    match cell_type {
        CellType::Tet4 | CellType::Tet10 => 1.0 / 6.0,
        CellType::Wedge6 | CellType::Wedge15 => 0.5,
        CellType::Pyramid5 | CellType::Pyramid13 => 1.0 / 3.0,
        _ => 1.0,
    }
}

#[test]
fn volumes_of_sheared_cells_far_from_the_origin() {
    for cell_type in CellType::SOLIDS {
        let mesh = one_cell(cell_type, |[x, y, z]| {
            [3.0 * x + y + 1e3, 2.0 * y - z + 1e3, 0.5 * z + x - 1e3]
        });
        // Determinant of the map: 3 * (2 * 0.5) + 1 * (0 - (-1) * 1) * ... computed by expansion along the first row.
        let determinant = 3.0 * (2.0 * 0.5 - 0.0) - (0.0 + 1.0);
        let expected = determinant * reference_volume(cell_type);
        let info = describe(&mesh);
        assert!(
            (info.volume - expected).abs() < 1e-9,
            "{cell_type}: {} {expected}",
            info.volume
        );
        assert_eq!(
            (info.n_inverted, info.parts.len(), info.n_coincident_nodes),
            (0, 1, 0)
        );
    }
}

#[test]
fn a_twisted_hex_has_the_volume_of_its_trilinear_map() {
    // Lifting node 6 by 1 adds the integral of s t over the square (1/4) times the mean of one factor: the map
    // z = r (1 + s t) has Jacobian 1 + s t, of mean 1 + 1/4.
    let mesh = one_cell(CellType::Hex8, |[x, y, z]| [x, y, z * (1.0 + x * y)]);
    assert!((describe(&mesh).volume - 1.25).abs() < 1e-14);
}

#[test]
fn a_bulged_second_order_cell_has_its_curved_volume() {
    // z (1 + x (1 - x)) is of second order on the edges of the top, so the cell follows it where y is 0 or 1, and in
    // between by the same parabola: the volume is 1 + 1/6.
    let mesh = one_cell(CellType::Hex20, |[x, y, z]| {
        [x, y, if z == 1.0 { 1.0 + x * (1.0 - x) } else { z }]
    });
    assert!((describe(&mesh).volume - (1.0 + 1.0 / 6.0)).abs() < 1e-14);
    // A mid node between the slanted face and the face z = 0 of a tet10, moved by d along x, adds the integral of its
    // shape function 4 s t (mean 1/3) over the slanted face times d n_x; the face z = 0 stays in its plane.
    let mut mesh = one_cell(CellType::Tet10, |x| x);
    mesh.coords[5][0] += 0.01;
    let area_times_n_x = 0.5;
    let expected = 1.0 / 6.0 + 0.01 * area_times_n_x / 3.0;
    assert!((describe(&mesh).volume - expected).abs() < 1e-15);
}

#[test]
fn parts_coincident_nodes_mirrored_cells_and_sets_are_counted() {
    let mut mesh = one_cell(CellType::Hex8, |x| x);
    let twin = mesh.clone();
    mesh.coords
        .extend(twin.coords.iter().map(|p| [p[0] + 1.0, p[1], p[2] + 1e-12]));
    mesh.cells
        .push(CellType::Hex8, &[12, 13, 14, 15, 8, 9, 10, 11]);
    mesh.sets.cells.insert("all".into(), vec![0, 1]);
    mesh.sets.nodes.insert("corner".into(), vec![0]);
    let info = describe(&mesh);
    assert_eq!(
        (info.n_nodes, info.n_elements, info.parts.len()),
        (16, 2, 2)
    );
    assert_eq!((info.n_coincident_nodes, info.n_inverted), (4, 1));
    assert_eq!(info.bounding_box.unwrap()[1][0], 2.0);
    assert_eq!(info.sets[1], (SetKind::Nodes, "corner".into(), 1));
    assert_eq!(
        info.to_string(),
        "nodes                        16\n\
         elements                      2\n\
         \x20 hex8                        2\n\
         lowest x y z           0.000000      0.000000      0.000000\n\
         highest x y z          2.000000      1.000000      1.000000\n\
         volume            -1.000000e-12\n\
         inverted                      1\n\
         loose parts                   2\n\
         \x20 elements                    1  \n\
         \x20 elements                    1  \n\
         coincident nodes              4\n\
         sets                          2\n\
         \x20 elements                    2  all\n\
         \x20 nodes                       1  corner"
            .replace("-1.000000e-12", &format!("{:>13.6e}", info.volume))
    );
}

#[test]
fn an_empty_mesh_is_described() {
    let info = describe(&Mesh::default());
    assert_eq!(
        (info.n_nodes, info.parts.len(), info.bounding_box),
        (0, 0, None)
    );
}
