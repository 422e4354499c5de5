//! The curved cell of `fixtures.rs` in classic netCDF and in HDF5 files: Exodus II and MED, written from the manuals.

use super::fixtures::{Manual, in_order, med, upright_first};
use fem_mesh::Mesh;
use hdf5::types::{FixedAscii, VarLenUnicode};
use std::path::Path;

/// The nodes of the cell from 1, in that order.
fn connectivity(mesh: &Mesh, manual: Manual) -> Vec<i32> {
    let order = in_order(mesh.cells.types[0], manual(mesh.n_nodes()));
    order.iter().map(|&k| k as i32 + 1).collect()
}

/// Side of Exodus that is our face 1.
fn side(mesh: &Mesh) -> i32 {
    match mesh.cells.types[0].n_corners() {
        4 | 5 => 1,
        6 => 5,
        _ => 6,
    }
}

fn exodus_type(mesh: &Mesh) -> &'static str {
    match mesh.cells.types[0].n_corners() {
        4 => "TETRA",
        5 => "PYRAMID",
        6 => "WEDGE",
        _ => "HEX",
    }
}

enum Data {
    Ints(Vec<i32>),
    Floats(Vec<f64>),
    Chars(Vec<u8>),
}

struct Variable {
    name: &'static str,
    shape: Vec<usize>,
    data: Data,
    elem_type: Option<&'static str>,
}

/// Block 3 `body`, node set 5 without name, side set 9 `skin`.
fn exodus_variables(mesh: &Mesh) -> Vec<Variable> {
    let n = mesh.n_nodes();
    let ints = |name, ints: &[i32]| Variable {
        name,
        shape: vec![ints.len()],
        data: Data::Ints(ints.to_vec()),
        elem_type: None,
    };
    let name = |variable, text: &str| {
        let mut chars = text.as_bytes().to_vec();
        chars.resize(33, 0);
        Variable {
            name: variable,
            shape: vec![1, 33],
            data: Data::Chars(chars),
            elem_type: None,
        }
    };
    let axis = |name, axis: usize| Variable {
        name,
        shape: vec![n],
        data: Data::Floats(mesh.coords.iter().map(|x| x[axis]).collect()),
        elem_type: None,
    };
    let ids: Vec<i32> = mesh.node_ids.iter().map(|&id| id as i32).collect();
    vec![
        axis("coordx", 0),
        axis("coordy", 1),
        axis("coordz", 2),
        ints("node_num_map", &ids),
        ints("elem_num_map", &[7]),
        ints("eb_prop1", &[3]),
        name("eb_names", "body"),
        Variable {
            name: "connect1",
            shape: vec![1, n],
            data: Data::Ints(connectivity(mesh, upright_first)),
            elem_type: Some(exodus_type(mesh)),
        },
        ints("ns_prop1", &[5]),
        ints("node_ns1", &[1]),
        ints("ss_prop1", &[9]),
        name("ss_names", "skin"),
        ints("elem_ss1", &[1]),
        ints("side_ss1", &[side(mesh)]),
    ]
}

/// Exodus II in classic netCDF: CDF-1, CDF-2 or CDF-5.
pub(super) fn exodus_classic(mesh: &Mesh, version: u8) -> Vec<u8> {
    let variables = exodus_variables(mesh);
    let n_head = classic_head(&variables, version, 0).len();
    let mut bytes = classic_head(&variables, version, n_head);
    for variable in &variables {
        bytes.extend(padded(data_bytes(&variable.data)));
    }
    bytes
}

fn data_bytes(data: &Data) -> Vec<u8> {
    match data {
        Data::Ints(ints) => ints.iter().flat_map(|i| i.to_be_bytes()).collect(),
        Data::Floats(floats) => floats.iter().flat_map(|x| x.to_be_bytes()).collect(),
        Data::Chars(chars) => chars.clone(),
    }
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The head; every length of every variable is a dimension of its own. Data start at byte `start`.
fn classic_head(variables: &[Variable], version: u8, mut start: usize) -> Vec<u8> {
    let mut head = vec![b'C', b'D', b'F', version];
    let count = |n: usize| match version {
        5 => (n as u64).to_be_bytes().to_vec(),
        _ => (n as u32).to_be_bytes().to_vec(),
    };
    let tag = |tag: u32, n: usize| [tag.to_be_bytes().to_vec(), count(n)].concat();
    let name = |name: &str| [count(name.len()), padded(name.as_bytes().to_vec())].concat();
    head.extend(count(0)); // no records
    let lengths: Vec<usize> = variables.iter().flat_map(|v| v.shape.clone()).collect();
    head.extend(tag(10, lengths.len()));
    for (k, &length) in lengths.iter().enumerate() {
        head.extend(name(&format!("dim{k}")));
        head.extend(count(length));
    }
    head.extend(tag(12, 1));
    head.extend(name("title"));
    head.extend(2_u32.to_be_bytes());
    head.extend(name("a model"));
    head.extend(tag(11, variables.len()));
    let mut dimension = 0;
    for variable in variables {
        head.extend(name(variable.name));
        head.extend(count(variable.shape.len()));
        for _ in &variable.shape {
            head.extend(count(dimension));
            dimension += 1;
        }
        match variable.elem_type {
            None => head.extend(tag(0, 0)),
            Some(elem_type) => {
                head.extend(tag(12, 1));
                head.extend(name("elem_type"));
                head.extend(2_u32.to_be_bytes());
                head.extend(name(elem_type));
            }
        }
        let kind: u32 = match variable.data {
            Data::Ints(_) => 4,
            Data::Floats(_) => 6,
            Data::Chars(_) => 2,
        };
        head.extend(kind.to_be_bytes());
        let n_bytes = padded(data_bytes(&variable.data)).len();
        head.extend(count(n_bytes));
        match version {
            1 => head.extend((start as u32).to_be_bytes()),
            _ => head.extend((start as u64).to_be_bytes()),
        }
        start += n_bytes;
    }
    head
}

/// Exodus II in netCDF-4, as its variables stand in HDF5; compressed where that is allowed.
pub(super) fn exodus_hdf(mesh: &Mesh, path: &Path) {
    let file = hdf5::File::create(path).unwrap();
    for variable in exodus_variables(mesh) {
        let builder = file.new_dataset_builder();
        let shape = variable.shape;
        let created = match variable.data {
            Data::Ints(ints) if shape.len() == 2 => {
                let builder = builder.empty::<i32>().shape((shape[0], shape[1]));
                let dataset = builder.create(variable.name).unwrap();
                dataset.write_raw(&ints).unwrap();
                dataset
            }
            Data::Ints(ints) => builder.with_data(&ints).create(variable.name).unwrap(),
            Data::Floats(floats) => {
                let builder = builder.chunk(floats.len()).with_data(&floats);
                builder.create(variable.name).unwrap()
            }
            Data::Chars(chars) => {
                let chars: Vec<FixedAscii<1>> = (chars.iter())
                    .map(|&c| FixedAscii::from_ascii(&[c][..usize::from(c > 0)]).unwrap())
                    .collect();
                let builder = builder.empty::<FixedAscii<1>>().shape((shape[0], shape[1]));
                let dataset = builder.create(variable.name).unwrap();
                dataset.write_raw(&chars).unwrap();
                dataset
            }
        };
        if let Some(elem_type) = variable.elem_type {
            let text: VarLenUnicode = elem_type.parse().unwrap();
            let attribute = created
                .new_attr::<VarLenUnicode>()
                .create("elem_type")
                .unwrap();
            attribute.write_scalar(&text).unwrap();
        }
    }
}

/// MED 3: groups `body` (the solid, with a second group `two words`), `skin` (a face) and `corner` (the first node); a
/// second, smaller mesh without solids beside it.
pub(super) fn med_file(mesh: &Mesh, path: &Path) {
    let file = hdf5::File::create(path).unwrap();
    let group = |name: &str| {
        let mut at = file.group("/").unwrap();
        for part in name.split('/') {
            at = at.group(part).or_else(|_| at.create_group(part)).unwrap();
        }
        at
    };
    let number = |of: &hdf5::Group, name: &str, value: i32| {
        let attribute = of.new_attr::<i32>().create(name).unwrap();
        attribute.write_scalar(&value).unwrap();
    };
    let ints = |of: &hdf5::Group, name: &str, ints: &[i32]| {
        of.new_dataset_builder()
            .with_data(ints)
            .create(name)
            .unwrap();
    };
    let n = mesh.n_nodes();
    number(&group("ENS_MAA/part"), "ESP", 3);
    number(&group("ENS_MAA/empty"), "ESP", 3);
    let step = "ENS_MAA/part/-0000000000000000001-0000000000000000001";
    let nodes = group(&format!("{step}/NOE"));
    let columns: Vec<f64> = (0..3)
        .flat_map(|axis| mesh.coords.iter().map(move |x| x[axis]))
        .collect();
    nodes
        .new_dataset_builder()
        .with_data(&columns)
        .create("COO")
        .unwrap();
    let ids: Vec<i32> = mesh.node_ids.iter().map(|&id| id as i32).collect();
    ints(&nodes, "NUM", &ids);
    let families: Vec<i32> = (0..n).map(|k| i32::from(k == 0)).collect();
    ints(&nodes, "FAM", &families);
    let cell_type = mesh.cells.types[0];
    let names = [
        (4, "TE4"),
        (10, "T10"),
        (5, "PY5"),
        (13, "P13"),
        (6, "PE6"),
        (15, "P15"),
        (8, "HE8"),
        (20, "H20"),
        (27, "H27"),
    ];
    let name = names.iter().find(|(nodes, _)| *nodes == n).unwrap().1;
    let solid = group(&format!("{step}/MAI/{name}"));
    ints(&solid, "NOD", &connectivity(mesh, med));
    ints(&solid, "NUM", &[7]);
    ints(&solid, "FAM", &[-2]);
    let face = cell_type.faces()[1];
    let corners = &face.nodes[..face.cell_type.n_corners()];
    let corners: Vec<i32> = corners.iter().map(|&k| i32::from(k) + 1).collect();
    let skin = group(&format!(
        "{step}/MAI/{}",
        if corners.len() == 3 { "TR3" } else { "QU4" }
    ));
    ints(&skin, "NOD", &corners);
    ints(&skin, "NUM", &[8]);
    ints(&skin, "FAM", &[-1]);
    let families: [(&str, i32, &[&str]); 3] = [
        ("NOEUD/FAM_1_corner", 1, &["corner"]),
        ("ELEME/FAM_-1_skin", -1, &["skin"]),
        ("ELEME/FAM_-2_body", -2, &["body", "two words"]),
    ];
    for (path, id, names) in families {
        let family = group(&format!("FAS/part/{path}"));
        number(&family, "NUM", id);
        let texts: Vec<[i8; 80]> = (names.iter())
            .map(|name| {
                let mut text = [0; 80];
                text.iter_mut()
                    .zip(name.bytes())
                    .for_each(|(c, b)| *c = b as i8);
                text
            })
            .collect();
        let of_groups = family.create_group("GRO").unwrap();
        of_groups
            .new_dataset_builder()
            .with_data(&texts)
            .create("NOM")
            .unwrap();
    }
}
