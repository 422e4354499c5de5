//! One curved cell without any symmetry, with sets, in every format: written from the manuals, not by the code under
//! test. The node orders are spelled out as the manuals do: `1` is a corner, `12` the middle between corners 1 and 2.

use fem_mesh::{CellType, Mesh};
use std::fmt::Write;

/// A curved cell, or its image in a plane under the same numbers: nodes 11, 12, ..., element 7.
pub(super) fn curved(cell_type: CellType, mirrored: bool) -> Mesh {
    let sign = if mirrored { -1.0 } else { 1.0 };
    let coords: Vec<[f64; 3]> = crate::mesh_info::jacobian::reference_nodes(cell_type)
        .iter()
        .map(|&[x, y, z]| {
            let bend = 0.06 * x * x + 0.05 * y * z - 0.04 * z * z + 0.03 * x * y;
            [
                x + bend,
                sign * (1.3 * y - 0.5 * bend),
                0.8 * z + 2.0 * bend,
            ]
        })
        .collect();
    let mut mesh = Mesh {
        node_ids: (11..11 + coords.len() as u64).collect(),
        coords,
        cell_ids: vec![7],
        ..Mesh::default()
    };
    let nodes: Vec<u32> = (0..mesh.n_nodes() as u32).collect();
    mesh.cells.push(cell_type, &nodes);
    mesh
}

/// A node order in words, by number of nodes.
pub(super) type Manual = fn(usize) -> &'static str;

const FACES_27: [&str; 7] = ["1584", "2376", "1265", "4378", "1234", "5678", "12345678"];

/// Nastran, and Exodus with its 27 nodes.
pub(super) fn upright_first(n_nodes: usize) -> &'static str {
    match n_nodes {
        20 => "1 2 3 4 5 6 7 8 12 23 34 41 15 26 37 48 56 67 78 85",
        27 => {
            "1 2 3 4 5 6 7 8 12 23 34 41 15 26 37 48 56 67 78 85 12345678 1234 5678 1584 2376 1265 4378"
        }
        15 => "1 2 3 4 5 6 12 23 31 14 25 36 45 56 64",
        _ => top_first(n_nodes),
    }
}

/// VTK.
pub(super) fn top_first(n_nodes: usize) -> &'static str {
    match n_nodes {
        4 => "1 2 3 4",
        5 => "1 2 3 4 5",
        6 => "1 2 3 4 5 6",
        8 => "1 2 3 4 5 6 7 8",
        10 => "1 2 3 4 12 23 13 14 24 34",
        13 => "1 2 3 4 5 12 23 34 41 15 25 35 45",
        15 => "1 2 3 4 5 6 12 23 31 45 56 64 14 25 36",
        20 => "1 2 3 4 5 6 7 8 12 23 34 41 56 67 78 85 15 26 37 48",
        _ => {
            "1 2 3 4 5 6 7 8 12 23 34 41 56 67 78 85 15 26 37 48 1584 2376 1265 4378 1234 5678 12345678"
        }
    }
}

/// I-DEAS; it has no pyramids and no hexahedron of 27 nodes.
pub(super) fn around(n_nodes: usize) -> &'static str {
    match n_nodes {
        5 | 13 | 27 => "",
        10 => "1 12 2 23 3 31 14 24 34 4",
        15 => "1 12 2 23 3 31 14 25 36 4 45 5 56 6 64",
        20 => "1 12 2 23 3 34 4 41 15 26 37 48 5 56 6 67 7 78 8 85",
        _ => top_first(n_nodes),
    }
}

/// MED, in our numbers of the corners: its second corner is our last of the bottom.
pub(super) fn med(n_nodes: usize) -> &'static str {
    match n_nodes {
        4 => "1 3 2 4",
        5 => "1 4 3 2 5",
        6 => "1 3 2 4 6 5",
        8 => "1 4 3 2 5 8 7 6",
        10 => "1 3 2 4 13 32 21 14 34 24",
        13 => "1 4 3 2 5 14 43 32 21 15 45 35 25",
        15 => "1 3 2 4 6 5 13 32 21 46 65 54 14 36 25",
        20 => "1 4 3 2 5 8 7 6 14 43 32 21 58 87 76 65 15 48 37 26",
        _ => {
            "1 4 3 2 5 8 7 6 14 43 32 21 58 87 76 65 15 48 37 26 1234 1485 4378 3267 2156 5678 12345678"
        }
    }
}

/// Our nodes in the order that the manual spells.
pub(super) fn in_order(cell_type: CellType, words: &str) -> Vec<u32> {
    let sorted = |word: &str| {
        let mut corners: Vec<u8> = word.bytes().map(|c| c - b'1').collect();
        corners.sort_unstable();
        corners
    };
    let our_name = |node: usize| -> Vec<u8> {
        let (n_corners, edges) = (cell_type.n_corners(), cell_type.edges());
        if node < n_corners {
            vec![node as u8]
        } else if let Some(&[a, b]) = edges.get(node - n_corners) {
            vec![a.min(b), a.max(b)]
        } else {
            sorted(FACES_27[node - 20])
        }
    };
    let names: Vec<Vec<u8>> = (0..cell_type.n_nodes()).map(our_name).collect();
    let find = |word: &str| names.iter().position(|name| *name == sorted(word));
    words
        .split(' ')
        .map(|word| find(word).unwrap() as u32)
        .collect()
}

/// The node numbers of the fixture in that order.
fn numbers(mesh: &Mesh, manual: Manual) -> Vec<u64> {
    let order = in_order(mesh.cells.types[0], manual(mesh.n_nodes()));
    order.iter().map(|&k| mesh.node_ids[k as usize]).collect()
}

/// Corners, by number, of the face that the fixtures put into the set `skin`: our face 1.
fn skin(mesh: &Mesh) -> Vec<u64> {
    let face = mesh.cells.types[0].faces()[1];
    let corners = face.nodes[..face.cell_type.n_corners()].iter();
    corners.map(|&k| mesh.node_ids[usize::from(k)]).collect()
}

fn joined<T: ToString>(numbers: impl IntoIterator<Item = T>, between: &str) -> String {
    let words: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
    words.join(between)
}

/// Free field; the property of the solid is 3, that of a shell on the skin 4.
pub(super) fn nastran(mesh: &Mesh) -> String {
    let mut text = "SOL 101\nCEND\nBEGIN BULK\n".to_owned();
    for (id, [x, y, z]) in mesh.node_ids.iter().zip(&mesh.coords) {
        writeln!(text, "GRID,{id},,{x:?},{y:?},{z:?}").unwrap();
    }
    let name = match mesh.cells.types[0].n_corners() {
        4 => "CTETRA",
        5 => "CPYRAM",
        6 => "CPENTA",
        _ => "CHEXA",
    };
    let mut entry = |name: &str, numbers: Vec<u64>| {
        let lines: Vec<String> = numbers.chunks(8).map(|line| joined(line, ",")).collect();
        writeln!(text, "{name},{}", lines.join(",+\n+,")).unwrap();
    };
    entry(name, [vec![7, 3], numbers(mesh, upright_first)].concat());
    let skin = skin(mesh);
    let name = if skin.len() == 3 { "CTRIA3" } else { "CQUAD4" };
    entry(name, [vec![8, 4], skin].concat());
    text + "SPC1,1,123,11\nENDDATA\n"
}

/// Datasets 2411, 2412 and 2467; property 3, group `skin` of a shell and group `corner` of node 11.
pub(super) fn unv(mesh: &Mesh) -> String {
    let mut text = "    -1\n  2411\n".to_owned();
    for (id, x) in mesh.node_ids.iter().zip(&mesh.coords) {
        let x = x.map(|x| format!("{x:.16e}").replace('e', "D"));
        writeln!(text, "{id:10}{:10}{:10}{:10}\n{}", 1, 1, 11, joined(x, " ")).unwrap();
    }
    text += "    -1\n    -1\n  2412\n";
    let kind = match mesh.n_nodes() {
        4 => 111,
        6 => 112,
        15 => 113,
        8 => 115,
        20 => 116,
        _ => 118,
    };
    let mut element = |id: u64, kind: u64, property: u64, nodes: &[u64]| {
        let lines: Vec<String> = nodes.chunks(8).map(|line| joined(line, " ")).collect();
        let n = nodes.len();
        writeln!(text, "{id} {kind} {property} 1 7 {n}\n{}", lines.join("\n")).unwrap();
    };
    element(7, kind, 3, &numbers(mesh, around));
    let skin = skin(mesh);
    element(8, if skin.len() == 3 { 91 } else { 94 }, 4, &skin);
    text += "9 21 1 1 7 2\n0 1 1\n11 12\n"; // a beam
    text += "    -1\n    -1\n  2467\n";
    text += "1 0 0 0 0 0 0 1\nskin\n8 8 0 0\n2 0 0 0 0 0 0 2\ncorner\n7 11 0 0 8 9 0 0\n    -1\n";
    text
}

/// Points, cells (the solid and the face of set `skin`) and types of the fixture for VTK.
struct VtkParts {
    cells: Vec<Vec<u32>>,
    types: Vec<u8>,
}

fn vtk_parts(mesh: &Mesh) -> VtkParts {
    let cell_type = mesh.cells.types[0];
    let skin: Vec<u32> = skin(mesh).iter().map(|&id| (id - 11) as u32).collect();
    VtkParts {
        types: vec![cell_type.vtk_id(), if skin.len() == 3 { 5 } else { 9 }],
        cells: vec![in_order(cell_type, top_first(mesh.n_nodes())), skin],
    }
}

/// Legacy ASCII of version 2 (`modern` false) or 5.1.
pub(super) fn vtk_ascii(mesh: &Mesh, modern: bool) -> String {
    let parts = vtk_parts(mesh);
    let n = mesh.n_nodes();
    let version = if modern { "5.1" } else { "2.0" };
    let mut text =
        format!("# vtk DataFile Version {version}\na title\nASCII\nDATASET UNSTRUCTURED_GRID\n");
    writeln!(text, "POINTS {n} double").unwrap();
    for x in &mesh.coords {
        writeln!(text, "{}", joined(x.map(|x| format!("{x:?}")), " ")).unwrap();
    }
    let all = parts.cells.concat();
    if modern {
        let ends = [0, n, all.len()];
        writeln!(
            text,
            "CELLS 3 {}\nOFFSETS vtktypeint64\n{}",
            all.len(),
            joined(ends, " ")
        )
        .unwrap();
        writeln!(text, "CONNECTIVITY vtktypeint64\n{}", joined(&all, " ")).unwrap();
    } else {
        writeln!(text, "CELLS 2 {}", all.len() + 2).unwrap();
        for cell in &parts.cells {
            writeln!(text, "{} {}", cell.len(), joined(cell, " ")).unwrap();
        }
    }
    writeln!(text, "CELL_TYPES 2\n{}", joined(&parts.types, "\n")).unwrap();
    writeln!(
        text,
        "CELL_DATA 2\nSCALARS mat int 1\nLOOKUP_TABLE default\n3 4"
    )
    .unwrap();
    writeln!(text, "VECTORS v float\n1 2 3 nan 5 6\nFIELD FieldData 2").unwrap();
    writeln!(
        text,
        "element_id 1 2 int\n7 8\nMETADATA\nINFORMATION 0\n\nset:skin 1 2 unsigned_char\n0 1"
    )
    .unwrap();
    let ids = joined(&mesh.node_ids, " ");
    let marks = joined((0..n).map(|k| u8::from(k == 0)), " ");
    writeln!(text, "POINT_DATA {n}\nFIELD f 2\nnode_id 1 {n} long\n{ids}").unwrap();
    writeln!(text, "set%3acorner 1 {n} char\n{marks}").unwrap();
    text
}

/// Legacy binary, version 4.2.
pub(super) fn vtk_binary(mesh: &Mesh) -> Vec<u8> {
    let parts = vtk_parts(mesh);
    let n = mesh.n_nodes();
    let mut bytes =
        b"# vtk DataFile Version 4.2\na title\nBINARY\nDATASET UNSTRUCTURED_GRID\n".to_vec();
    bytes.extend(format!("POINTS {n} double\n").bytes());
    bytes.extend(mesh.coords.iter().flatten().flat_map(|x| x.to_be_bytes()));
    let length: usize = parts.cells.iter().map(|c| c.len() + 1).sum();
    bytes.extend(format!("\nCELLS 2 {length}\n").bytes());
    for cell in &parts.cells {
        bytes.extend((cell.len() as i32).to_be_bytes());
        bytes.extend(cell.iter().flat_map(|&n| (n as i32).to_be_bytes()));
    }
    bytes.extend(b"\nCELL_TYPES 2\n");
    bytes.extend(parts.types.iter().flat_map(|&t| i32::from(t).to_be_bytes()));
    bytes.extend(b"\nCELL_DATA 2\nSCALARS mat int\nLOOKUP_TABLE default\n");
    bytes.extend([3_i32, 4].iter().flat_map(|m| m.to_be_bytes()));
    bytes.extend(b"\nVECTORS v float\n");
    bytes.extend([0x0a_u8; 24]);
    bytes.extend(b"\nFIELD FieldData 2\nelement_id 1 2 vtkIdType\n");
    bytes.extend([7_i32, 8].iter().flat_map(|m| m.to_be_bytes()));
    bytes.extend(b"\nset:skin 1 2 unsigned_char\n\x00\x01\n");
    bytes.extend(format!("POINT_DATA {n}\nGLOBAL_IDS node_id vtkIdType\n").bytes());
    bytes.extend(
        mesh.node_ids
            .iter()
            .flat_map(|&id| (id as i32).to_be_bytes()),
    );
    bytes.extend(format!("\nFIELD f 1\nset:corner 1 {n} char\n").bytes());
    bytes.extend((0..n).map(|k| u8::from(k == 0)));
    bytes.push(b'\n');
    bytes
}

/// How a `.vtu` fixture is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vtu {
    Ascii,
    Base64,
    Base64Compressed,
    AppendedRaw,
    AppendedRawCompressed,
    AppendedBase64,
}

impl Vtu {
    pub(super) const ALL: [Vtu; 6] = [
        Vtu::Ascii,
        Vtu::Base64,
        Vtu::Base64Compressed,
        Vtu::AppendedRaw,
        Vtu::AppendedRawCompressed,
        Vtu::AppendedBase64,
    ];
}

/// `big_endian` with heads of 8 bytes, else little-endian with heads of 4.
pub(super) fn vtu(mesh: &Mesh, form: Vtu, big_endian: bool) -> Vec<u8> {
    let parts = vtk_parts(mesh);
    let n = mesh.n_nodes();
    let all = parts.cells.concat();
    let ints = |numbers: &[i64]| -> (Vec<u8>, String) {
        let bytes = numbers.iter().flat_map(|i| {
            if big_endian {
                i.to_be_bytes()
            } else {
                i.to_le_bytes()
            }
        });
        (bytes.collect(), joined(numbers, " "))
    };
    let points: Vec<f64> = mesh.coords.concat();
    let of_points = points.iter().flat_map(|x| {
        if big_endian {
            x.to_be_bytes()
        } else {
            x.to_le_bytes()
        }
    });
    let small = |numbers: &[u8]| (numbers.to_vec(), joined(numbers, " "));
    let node_ids: Vec<i64> = mesh.node_ids.iter().map(|&id| id as i64).collect();
    let nodes: Vec<i64> = all.iter().map(|&k| i64::from(k)).collect();
    let marks: Vec<u8> = (0..n).map(|k| u8::from(k == 0)).collect();
    let points_text = joined(points.iter().map(|x| format!("{x:?}")), "\n");
    let arrays = [
        ("PointData", "node_id", "Int64", 1, ints(&node_ids)),
        ("PointData", "set:corner", "UInt8", 1, small(&marks)),
        ("CellData", "element_id", "Int64", 1, ints(&[7, 8])),
        ("CellData", "set:skin", "UInt8", 1, small(&[0, 1])),
        ("CellData", "mat", "Int64", 1, ints(&[3, 4])),
        (
            "Points",
            "",
            "Float64",
            3,
            (of_points.collect(), points_text),
        ),
        ("Cells", "connectivity", "Int64", 1, ints(&nodes)),
        (
            "Cells",
            "offsets",
            "Int64",
            1,
            ints(&[n as i64, all.len() as i64]),
        ),
        ("Cells", "types", "UInt8", 1, small(&parts.types)),
    ];
    let (order, head) = if big_endian {
        ("BigEndian", "UInt64")
    } else {
        ("LittleEndian", "UInt32")
    };
    let is_compressed = matches!(form, Vtu::Base64Compressed | Vtu::AppendedRawCompressed);
    let compressor = if is_compressed {
        " compressor=\"vtkZLibDataCompressor\""
    } else {
        ""
    };
    let mut text = format!(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"{order}\" \
         header_type=\"{head}\"{compressor}>\n<UnstructuredGrid>\n<FieldData><DataArray type=\"Float64\" \
         Name=\"TimeValue\" NumberOfTuples=\"1\" format=\"ascii\">0</DataArray></FieldData>\n\
         <Piece NumberOfPoints=\"{n}\" NumberOfCells=\"2\">\n"
    );
    let mut appended = Vec::new();
    for (section, name, kind, n_components, (bytes, ascii)) in arrays {
        let head = |format: &str| {
            format!(
                "<{section}><DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{n_components}\" format=\"{format}\""
            )
        };
        let encoded = encode(form, big_endian, &bytes);
        let tag = match form {
            Vtu::Ascii => format!("{}>\n{ascii}\n</DataArray>", head("ascii")),
            Vtu::Base64 | Vtu::Base64Compressed => {
                let encoded = String::from_utf8(encoded).unwrap();
                format!(
                    "{}>\n   {encoded}\n<InformationKey name=\"x\"/></DataArray>",
                    head("binary")
                )
            }
            _ => {
                let offset = appended.len();
                appended.extend(encoded);
                format!("{} offset=\"{offset}\"/>", head("appended"))
            }
        };
        writeln!(text, "{tag}</{section}>").unwrap();
    }
    text += "</Piece>\n</UnstructuredGrid>\n";
    let mut bytes = text.into_bytes();
    if !appended.is_empty() {
        let encoding = if form == Vtu::AppendedBase64 {
            "base64"
        } else {
            "raw"
        };
        bytes.extend(format!("<AppendedData encoding=\"{encoding}\">\n  _").bytes());
        bytes.extend(appended);
        bytes.extend(b"\n</AppendedData>\n");
    }
    bytes.extend(b"</VTKFile>\n");
    bytes
}

/// The bytes of one array as the form writes them; compressed ones in blocks of 64 bytes.
fn encode(form: Vtu, big_endian: bool, bytes: &[u8]) -> Vec<u8> {
    use base64::Engine;
    const BLOCK: usize = 64;
    let number = |n: usize| match big_endian {
        true => (n as u64).to_be_bytes().to_vec(),
        false => (n as u32).to_le_bytes().to_vec(),
    };
    let base64 = |bytes: &[u8]| {
        base64::engine::general_purpose::STANDARD
            .encode(bytes)
            .into_bytes()
    };
    if !matches!(form, Vtu::Base64Compressed | Vtu::AppendedRawCompressed) {
        let whole = [number(bytes.len()), bytes.to_vec()].concat();
        return match form {
            Vtu::AppendedRaw => whole,
            _ => base64(&whole),
        };
    }
    let blocks: Vec<Vec<u8>> = (bytes.chunks(BLOCK))
        .map(|block| {
            let level = flate2::Compression::default();
            let mut packed = Vec::new();
            let mut encoder = flate2::read::ZlibEncoder::new(block, level);
            std::io::Read::read_to_end(&mut encoder, &mut packed).unwrap();
            packed
        })
        .collect();
    let mut head = [
        number(blocks.len()),
        number(BLOCK),
        number(bytes.len() % BLOCK),
    ]
    .concat();
    head.extend(blocks.iter().flat_map(|b| number(b.len())));
    match form {
        Vtu::AppendedRawCompressed => [head, blocks.concat()].concat(),
        _ => [base64(&head), base64(&blocks.concat())].concat(),
    }
}
