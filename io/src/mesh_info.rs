//! What a mesh is: counts, size, volume, parts, sets; the answer of `fem-solve mesh info`.
//!
//! What goes in: a whole mesh. What comes out: numbers, and a table of them.
//!
//! Invariant: looks at geometry and numbering only; judges no element.

pub(crate) mod jacobian;
pub(crate) mod parts;

pub use parts::Part;

use fem_mesh::{CellFace, CellType, Mesh};
use jacobian::Jacobians;
use std::collections::BTreeMap;
use std::fmt;

/// What a named set holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetKind {
    /// Nodes.
    Nodes,
    /// Elements.
    Elements,
    /// Faces of elements.
    Faces,
}

/// Facts about a mesh, from [`describe`].
#[derive(Clone, Debug, PartialEq)]
pub struct MeshInfo {
    /// Number of nodes.
    pub n_nodes: usize,
    /// Number of elements.
    pub n_elements: usize,
    /// Number of elements of each type that occurs.
    pub by_type: BTreeMap<CellType, usize>,
    /// Lowest and highest coordinates of the nodes, m; `None` without nodes.
    pub bounding_box: Option<[[f64; 3]; 2]>,
    /// Sum of the elements' volumes, m3; that of an element turned inside out is negative.
    pub volume: f64,
    /// Elements whose Jacobian determinant is not positive at some quadrature point.
    pub n_inverted: usize,
    /// Parts that share no node with one another, largest first.
    pub parts: Vec<Part>,
    /// Nodes at the place of an earlier node (to 1e-9 of the size of the mesh).
    pub n_coincident_nodes: usize,
    /// Kind, name and number of members of each set.
    pub sets: Vec<(SetKind, String, usize)>,
}

/// Computes the facts about a whole mesh.
///
/// Volumes are those of the isoparametric elements, exact up to rounding: the divergence theorem turns them into
/// integrals over the faces, which are polynomials of known degree.
pub fn describe(mesh: &Mesh) -> MeshInfo {
    let mut by_type = BTreeMap::new();
    for &cell_type in &mesh.cells.types {
        *by_type.entry(cell_type).or_insert(0) += 1;
    }
    let volume = (0..mesh.n_cells())
        .map(|cell| cell_volume(mesh, cell))
        .sum();
    let bounding_box = bounding_box(&mesh.coords);
    MeshInfo {
        n_nodes: mesh.n_nodes(),
        n_elements: mesh.n_cells(),
        by_type,
        bounding_box,
        volume,
        n_inverted: count_inverted(mesh),
        parts: parts::find_parts(mesh),
        n_coincident_nodes: bounding_box.map_or(0, |b| count_coincident(&mesh.coords, b)),
        sets: list_sets(mesh),
    }
}

fn list_sets(mesh: &Mesh) -> Vec<(SetKind, String, usize)> {
    let sets = &mesh.sets;
    let elements = sets
        .cells
        .iter()
        .map(|(name, m)| (SetKind::Elements, name.clone(), m.len()));
    let faces = sets
        .faces
        .iter()
        .map(|(name, m)| (SetKind::Faces, name.clone(), m.len()));
    let nodes = sets
        .nodes
        .iter()
        .map(|(name, m)| (SetKind::Nodes, name.clone(), m.len()));
    elements.chain(faces).chain(nodes).collect()
}

fn bounding_box(coords: &[[f64; 3]]) -> Option<[[f64; 3]; 2]> {
    let first = *coords.first()?;
    let mut bounds = [first, first];
    for point in coords {
        for axis in 0..3 {
            bounds[0][axis] = bounds[0][axis].min(point[axis]);
            bounds[1][axis] = bounds[1][axis].max(point[axis]);
        }
    }
    Some(bounds)
}

type Point = [f64; 3];

fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// Triple product a . (b x c).
fn triple(a: Point, b: Point, c: Point) -> f64 {
    a[0] * (b[1] * c[2] - b[2] * c[1])
        + a[1] * (b[2] * c[0] - b[0] * c[2])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
}

/// Volume of a cell: a third of the flux of x through its faces, with the origin at its first node.
fn cell_volume(mesh: &Mesh, cell: usize) -> f64 {
    let origin = mesh.coords[mesh.cells.nodes_of(cell)[0] as usize];
    let n_faces = mesh.cells.types[cell].faces().len() as u8;
    let mut points = [[0.0; 3]; 9];
    let mut flux = 0.0;
    for face in 0..n_faces {
        let (face_type, nodes) = mesh.cells.nodes_of_face(CellFace {
            cell: cell as u32,
            face,
        });
        for (point, node) in points.iter_mut().zip(nodes) {
            *point = minus(mesh.coords[node as usize], origin);
        }
        flux += face_flux(face_type, &points);
    }
    flux / 3.0
}

/// Integral of x . n over a face.
fn face_flux(face_type: CellType, x: &[Point; 9]) -> f64 {
    let triangle = |a: usize, b: usize, c: usize| triple(x[a], x[b], x[c]) / 2.0;
    match face_type {
        CellType::Tri3 => triangle(0, 1, 2),
        // The bilinear surface lies midway between its two triangulations.
        CellType::Quad4 => {
            (triangle(0, 1, 2) + triangle(0, 2, 3) + triangle(0, 1, 3) + triangle(1, 2, 3)) / 2.0
        }
        CellType::Tri6 => second_order_flux(x, |u, v| {
            // The square collapsed onto the triangle: (u, v) -> (s, t) with Jacobian (1 - s).
            let (s, half) = ((1.0 + u) / 2.0, (1.0 + v) / 2.0);
            let t = half * (1.0 - s);
            (tri6_gradients(s, t), tri6_values(s, t), (1.0 - s) / 4.0)
        }),
        CellType::Quad8 => {
            second_order_flux(x, |u, v| (quad8_gradients(u, v), quad8_values(u, v), 1.0))
        }
        CellType::Quad9 => {
            second_order_flux(x, |u, v| (quad9_gradients(u, v), quad9_values(u, v), 1.0))
        }
        _ => 0.0,
    }
}

/// Gauss rule of 3 x 3 points on the square [-1, 1]^2: exact to degree 5 in each variable, which the integrand has at
/// most. `shape` returns gradients and values of the shape functions and the factor of the mapping to the square.
fn second_order_flux(
    x: &[Point; 9],
    shape: impl Fn(f64, f64) -> ([[f64; 2]; 9], [f64; 9], f64),
) -> f64 {
    let abscissa = 0.6_f64.sqrt();
    let rule = [
        (-abscissa, 5.0 / 9.0),
        (0.0, 8.0 / 9.0),
        (abscissa, 5.0 / 9.0),
    ];
    let mut flux = 0.0;
    for (u, weight_u) in rule {
        for (v, weight_v) in rule {
            let (gradients, values, factor) = shape(u, v);
            let (mut at, mut along_u, mut along_v) = ([0.0; 3], [0.0; 3], [0.0; 3]);
            for k in 0..9 {
                for axis in 0..3 {
                    at[axis] += values[k] * x[k][axis];
                    along_u[axis] += gradients[k][0] * x[k][axis];
                    along_v[axis] += gradients[k][1] * x[k][axis];
                }
            }
            flux += weight_u * weight_v * factor * triple(at, along_u, along_v);
        }
    }
    flux
}

fn tri6_values(s: f64, t: f64) -> [f64; 9] {
    let r = 1.0 - s - t;
    [
        r * (2.0 * r - 1.0),
        s * (2.0 * s - 1.0),
        t * (2.0 * t - 1.0),
        4.0 * r * s,
        4.0 * s * t,
        4.0 * t * r,
        0.0,
        0.0,
        0.0,
    ]
}

fn tri6_gradients(s: f64, t: f64) -> [[f64; 2]; 9] {
    let r = 1.0 - s - t;
    [
        [1.0 - 4.0 * r, 1.0 - 4.0 * r],
        [4.0 * s - 1.0, 0.0],
        [0.0, 4.0 * t - 1.0],
        [4.0 * (r - s), -4.0 * s],
        [4.0 * t, 4.0 * s],
        [-4.0 * t, 4.0 * (r - t)],
        [0.0; 2],
        [0.0; 2],
        [0.0; 2],
    ]
}

const QUAD_CORNERS: [[f64; 2]; 4] = [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]];

fn quad8_values(u: f64, v: f64) -> [f64; 9] {
    let mut values = [0.0; 9];
    for (value, [a, b]) in values.iter_mut().zip(QUAD_CORNERS) {
        *value = (1.0 + a * u) * (1.0 + b * v) * (a * u + b * v - 1.0) / 4.0;
    }
    values[4] = (1.0 - u * u) * (1.0 - v) / 2.0;
    values[5] = (1.0 + u) * (1.0 - v * v) / 2.0;
    values[6] = (1.0 - u * u) * (1.0 + v) / 2.0;
    values[7] = (1.0 - u) * (1.0 - v * v) / 2.0;
    values
}

fn quad8_gradients(u: f64, v: f64) -> [[f64; 2]; 9] {
    let mut gradients = [[0.0; 2]; 9];
    for (gradient, [a, b]) in gradients.iter_mut().zip(QUAD_CORNERS) {
        gradient[0] = a * (1.0 + b * v) * (2.0 * a * u + b * v) / 4.0;
        gradient[1] = b * (1.0 + a * u) * (a * u + 2.0 * b * v) / 4.0;
    }
    gradients[4] = [-u * (1.0 - v), -(1.0 - u * u) / 2.0];
    gradients[5] = [(1.0 - v * v) / 2.0, -v * (1.0 + u)];
    gradients[6] = [-u * (1.0 + v), (1.0 - u * u) / 2.0];
    gradients[7] = [-(1.0 - v * v) / 2.0, -v * (1.0 - u)];
    gradients
}

/// Places of the nine nodes of a square, in units of half its side.
const QUAD9: [[i8; 2]; 9] = [
    [-1, -1],
    [1, -1],
    [1, 1],
    [-1, 1],
    [0, -1],
    [1, 0],
    [0, 1],
    [-1, 0],
    [0, 0],
];

/// The quadratic through -1, 0, 1 that is 1 at `node` and 0 at the others, and its derivative.
fn lagrange(node: i8, u: f64) -> [f64; 2] {
    match node {
        0 => [1.0 - u * u, -2.0 * u],
        _ => {
            let node = f64::from(node);
            [0.5 * u * (u + node), u + 0.5 * node]
        }
    }
}

fn quad9_values(u: f64, v: f64) -> [f64; 9] {
    QUAD9.map(|[a, b]| lagrange(a, u)[0] * lagrange(b, v)[0])
}

fn quad9_gradients(u: f64, v: f64) -> [[f64; 2]; 9] {
    QUAD9.map(|[a, b]| {
        let ([f, df], [g, dg]) = (lagrange(a, u), lagrange(b, v));
        [df * g, f * dg]
    })
}

/// Nodes at the place of an earlier node.
fn count_coincident(coords: &[Point], [low, high]: [Point; 2]) -> usize {
    let size = (0..3)
        .map(|axis| high[axis] - low[axis])
        .fold(0.0, f64::max);
    parts::coincident_pairs(coords, parts::COINCIDENT * size).len()
}

/// Elements whose Jacobian determinant is not positive at some quadrature point.
fn count_inverted(mesh: &Mesh) -> usize {
    let mut tables: BTreeMap<CellType, Jacobians> = BTreeMap::new();
    let mut coords = Vec::with_capacity(27);
    let mut n_inverted = 0;
    for cell in 0..mesh.n_cells() {
        let cell_type = mesh.cells.types[cell];
        let nodes = mesh.cells.nodes_of(cell);
        coords.clear();
        coords.extend(nodes.iter().map(|&node| mesh.coords[node as usize]));
        let table = tables
            .entry(cell_type)
            .or_insert_with(|| Jacobians::new(cell_type));
        n_inverted += usize::from(table.determinants(&coords).lowest <= 0.0);
    }
    n_inverted
}

impl fmt::Display for SetKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            SetKind::Nodes => "nodes",
            SetKind::Elements => "elements",
            SetKind::Faces => "faces",
        })
    }
}

/// An aligned table, one fact a line, without a final line end.
impl fmt::Display for MeshInfo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |label: &str, text: String| writeln!(out, "{label:<18}{text}");
        let triple = |p: Point| p.map(|x| format!("{x:>13.6}")).join(" ");
        row("nodes", format!("{:>13}", self.n_nodes))?;
        row("elements", format!("{:>13}", self.n_elements))?;
        for (cell_type, n) in &self.by_type {
            row(&format!("  {cell_type}"), format!("{n:>13}"))?;
        }
        if let Some([low, high]) = self.bounding_box {
            row("lowest x y z", triple(low))?;
            row("highest x y z", triple(high))?;
        }
        row("volume", format!("{:>13.6e}", self.volume))?;
        row("inverted", format!("{:>13}", self.n_inverted))?;
        row("loose parts", format!("{:>13}", self.parts.len()))?;
        if self.parts.len() > 1 {
            const SHOWN: usize = 20;
            for part in self.parts.iter().take(SHOWN) {
                let name = part.name.as_deref().unwrap_or("");
                row("  elements", format!("{:>13}  {name}", part.n_elements))?;
            }
        }
        row(
            "coincident nodes",
            format!("{:>13}", self.n_coincident_nodes),
        )?;
        write!(out, "{:<18}{:>13}", "sets", self.sets.len())?;
        for (kind, name, n) in &self.sets {
            write!(out, "\n  {kind:<16}{n:>13}  {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
