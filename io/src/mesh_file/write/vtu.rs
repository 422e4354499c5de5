//! `.vtu`: solids, and a triangle or quadrilateral for every face of a set; arrays appended as they are in memory.
//!
//! Members of the set NAME are marked by ones in the array `set:NAME` of the points or of the cells; numbers stand in
//! `node_id` and `element_id`. That is what the reader looks for.
//!
//! Invariant: writes what [`super::super::read`] reads back as the same mesh.

use super::super::vtk::SET_PREFIX;
use super::{all_faces, cell_sets};
use fem_mesh::{CellFace, Mesh};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// One array: its tag without its offset, and its bytes.
struct Array {
    tag: String,
    bytes: Vec<u8>,
}

impl Array {
    fn new(name: &str, kind: &str, n_components: usize, bytes: Vec<u8>) -> Self {
        let tag = format!(
            "<DataArray type=\"{kind}\" Name=\"{}\" NumberOfComponents=\"{n_components}\" format=\"appended\"",
            escaped(name)
        );
        Array { tag, bytes }
    }

    fn of_numbers(name: &str, numbers: impl Iterator<Item = u64>) -> Self {
        let bytes = numbers.flat_map(|n| (n as i64).to_le_bytes()).collect();
        Array::new(name, "Int64", 1, bytes)
    }
}

/// Writes the file.
pub(super) fn write(out: &mut dyn Write, mesh: &Mesh) -> io::Result<()> {
    let faces = all_faces(mesh);
    let n_cells = mesh.n_cells() + faces.len();
    let sections = [
        ("PointData", point_arrays(mesh)),
        ("CellData", cell_arrays(mesh, &faces)),
        ("Points", vec![points(mesh)]),
        ("Cells", cells(mesh, &faces)),
    ];
    writeln!(out, "<?xml version=\"1.0\"?>")?;
    writeln!(
        out,
        "<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">"
    )?;
    writeln!(out, "<UnstructuredGrid>")?;
    writeln!(
        out,
        "<Piece NumberOfPoints=\"{}\" NumberOfCells=\"{n_cells}\">",
        mesh.n_nodes()
    )?;
    let mut offset = 0;
    for (section, arrays) in &sections {
        writeln!(out, "<{section}>")?;
        for array in arrays {
            writeln!(out, "{} offset=\"{offset}\"/>", array.tag)?;
            offset += 8 + array.bytes.len();
        }
        writeln!(out, "</{section}>")?;
    }
    writeln!(out, "</Piece>\n</UnstructuredGrid>")?;
    write!(out, "<AppendedData encoding=\"raw\">\n_")?;
    for array in sections.iter().flat_map(|(_, arrays)| arrays) {
        out.write_all(&(array.bytes.len() as u64).to_le_bytes())?;
        out.write_all(&array.bytes)?;
    }
    writeln!(out, "\n</AppendedData>\n</VTKFile>")
}

fn points(mesh: &Mesh) -> Array {
    let numbers = mesh.coords.iter().flatten();
    let bytes = numbers.flat_map(|x| x.to_le_bytes()).collect();
    Array::new("Points", "Float64", 3, bytes)
}

fn cells(mesh: &Mesh, faces: &[CellFace]) -> Vec<Array> {
    let mut connectivity: Vec<u64> = mesh.cells.nodes.iter().map(|&n| u64::from(n)).collect();
    let mut ends: Vec<u64> = mesh.cells.offsets[1..]
        .iter()
        .map(|&n| u64::from(n))
        .collect();
    let mut types: Vec<u8> = mesh.cells.types.iter().map(|t| t.vtk_id()).collect();
    for &face in faces {
        let (face_type, nodes) = mesh.cells.nodes_of_face(face);
        connectivity.extend(nodes.map(u64::from));
        ends.push(connectivity.len() as u64);
        types.push(face_type.vtk_id());
    }
    vec![
        Array::of_numbers("connectivity", connectivity.into_iter()),
        Array::of_numbers("offsets", ends.into_iter()),
        Array::new("types", "UInt8", 1, types),
    ]
}

fn point_arrays(mesh: &Mesh) -> Vec<Array> {
    let mut arrays = vec![Array::of_numbers("node_id", mesh.node_ids.iter().copied())];
    for (name, nodes) in &mesh.sets.nodes {
        let mut marks = vec![0; mesh.n_nodes()];
        nodes.iter().for_each(|&node| marks[node as usize] = 1);
        arrays.push(Array::new(
            &format!("{SET_PREFIX}{name}"),
            "UInt8",
            1,
            marks,
        ));
    }
    arrays
}

/// Faces stand behind the elements, and take the numbers after theirs.
fn cell_arrays(mesh: &Mesh, faces: &[CellFace]) -> Vec<Array> {
    let last = mesh.cell_ids.iter().max().map_or(0, |&id| id);
    let of_faces = (1..=faces.len() as u64).map(|k| last.wrapping_add(k));
    let numbers = mesh.cell_ids.iter().copied().chain(of_faces);
    let mut arrays = vec![Array::of_numbers("element_id", numbers)];
    let n_cells = mesh.n_cells();
    let mut marks: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let blank = || vec![0; n_cells + faces.len()];
    for (name, cells) in cell_sets(mesh) {
        let marks = marks.entry(name).or_insert_with(blank);
        cells.iter().for_each(|&cell| marks[cell as usize] = 1);
    }
    for (name, members) in &mesh.sets.faces {
        let marks = marks.entry(name).or_insert_with(blank);
        for face in members {
            if let Ok(k) = faces.binary_search(face) {
                marks[n_cells + k] = 1;
            }
        }
    }
    for (name, marks) in marks {
        arrays.push(Array::new(
            &format!("{SET_PREFIX}{name}"),
            "UInt8",
            1,
            marks,
        ));
    }
    arrays
}

/// For a value between double quotes. Control characters, which XML cannot hold, become blanks.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
