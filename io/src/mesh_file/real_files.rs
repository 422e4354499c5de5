//! Real files of other programs and inputs that broke them, where they are at hand (they are not part of the
//! project): counts, volumes and boxes against an index made with other tools.

use super::{MeshFile, read};
use crate::mesh_info::{MeshInfo, describe};
use std::path::PathBuf;

/// The folder of real files, or `None` (said on stderr) where it is not.
fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/real");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no folder {}", folder.display());
    None
}

fn open(folder: &std::path::Path, name: &str) -> (MeshFile, MeshInfo) {
    let file = read(&folder.join(name)).unwrap_or_else(|error| panic!("{error}"));
    let info = describe(&file.mesh);
    (file, info)
}

/// Fields of a line of comma-separated values with quoted fields.
fn csv_fields(line: &str) -> Vec<String> {
    let mut quoted = false;
    let split = line.split(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    split
        .map(|field| field.trim_matches('"').to_owned())
        .collect()
}

/// The number before `word` in `text`, or 0.
fn count_before(text: &str, word: &str) -> usize {
    let before = text
        .split(word)
        .next()
        .filter(|_| text.contains(word))
        .unwrap_or("");
    before
        .trim()
        .rsplit([' ', ';'])
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

#[test]
fn counts_volumes_and_boxes_of_the_index() {
    let Some(folder) = folder() else { return };
    let index = std::fs::read_to_string(folder.join("INDEX_A.csv")).unwrap();
    let head = csv_fields(index.lines().next().unwrap());
    let mut n_read = 0;
    for line in index.lines().skip(1) {
        let fields = csv_fields(line);
        let get = |name: &str| fields[head.iter().position(|h| h == name).unwrap()].as_str();
        let (name, format) = (get("file"), get("format"));
        let kinds = ["cgns_", "frd_", "fistr_", "cad_"];
        if kinds.iter().any(|kind| name.contains(kind)) {
            continue;
        }
        let refused = match name {
            n if n.contains("wInclude") => Some("no solid element"),
            _ => None,
        };
        if let Some(reason) = refused {
            let message = read(&folder.join(name)).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
            continue;
        }
        let (file, info) = open(&folder, name);
        println!("{name} ({format}): {:?}", file.warnings);
        let unused = count_before(get("quirks"), "nodes in no");
        let nodes: usize = get("nodes").parse().unwrap();
        assert_eq!(info.n_nodes + unused, nodes, "{name}");
        for (cell_type, n) in &info.by_type {
            assert!(
                get("cells")
                    .split(' ')
                    .any(|c| c == format!("{cell_type}:{n}")),
                "{name} {cell_type}:{n}"
            );
        }
        let volume: f64 = get("volume_abs").parse().unwrap();
        assert!(
            (info.volume.abs() - volume).abs() < 1e-6 * volume,
            "{name}: {} {volume}",
            info.volume
        );
        let expected = get("bbox").split(' ').map(|x| x.parse::<f64>().unwrap());
        let bounds = info.bounding_box.unwrap().concat();
        for (x, expected) in bounds.iter().zip(expected) {
            assert!(
                (x - expected).abs() < 1e-4 * (1.0 + expected.abs()),
                "{name}: {bounds:?}"
            );
        }
        assert_eq!(
            info.parts.len(),
            get("components").parse::<usize>().unwrap(),
            "{name}"
        );
        let pairs = count_before(get("quirks"), "coincident node pairs");
        // The pairs of one file are nodes of trusses, which are dropped.
        let of_trusses = name.contains("A1-triaxial");
        assert_eq!(
            info.n_coincident_nodes,
            if of_trusses { 0 } else { pairs },
            "{name}"
        );
        n_read += 1;
    }
    assert!(n_read >= 30, "only {n_read} files");
}

#[test]
fn inputs_that_broke_other_programs() {
    let Some(folder) = folder() else { return };
    let folder = folder.join("bugs");
    for name in [
        "01-gmsh-untagged/untagged22.msh",
        "01-gmsh-untagged/untagged41.msh",
    ] {
        let (file, info) = open(&folder, name);
        assert_eq!(
            (file.mesh.sets.cells["all"].len(), info.volume),
            (2, 2.0),
            "{name}"
        );
    }
    for name in ["gaps.msh", "gaps22.msh"] {
        let (file, info) = open(&folder, &format!("03-gmsh-high-ids-unused-points/{name}"));
        assert_eq!(
            (info.n_nodes, info.bounding_box),
            (27, Some([[0.0; 3], [1.0; 3]])),
            "{name}"
        );
        assert_eq!(file.mesh.sets.faces["pull"].len(), 4);
        let unused = file
            .warnings
            .iter()
            .find(|w| w.starts_with("3 nodes in no solid element"));
        assert_eq!(unused.is_some(), name == "gaps.msh", "{:?}", file.warnings);
    }
    let bars = ["lf.msh", "crlf.msh", "blanks.msh", "lf.inp", "crlf.inp"]
        .map(|name| open(&folder, &format!("05-crlf-tabs-blanks/{name}")).0.mesh);
    for bar in &bars {
        assert_eq!((&bar.coords, &bar.cells), (&bars[0].coords, &bars[0].cells));
        assert_eq!(bar.sets.faces["pull"], bars[0].sets.faces["pull"]);
        assert!(bar.sets.faces.contains_key("x0") || bar.sets.nodes["x0"].len() == 4);
    }
    let mirrored = [
        "hex_flipped.msh",
        "tet_half_flipped.msh",
        "tet_half_flipped.inp",
    ];
    let turned = mirrored.map(|name| {
        let (file, info) = open(&folder, &format!("06-flipped-elements/{name}"));
        assert_eq!(info.n_inverted, 0, "{name}");
        let warning = file.warnings.iter().find(|w| w.contains("inside out"));
        warning.expect(name).split(' ').next().unwrap().to_owned()
    });
    assert_eq!(turned, ["2", "12", "12"]);
    for name in ["numbers.inp", "numbers.bdf"] {
        let (_, info) = open(&folder, &format!("12-nastran-number-forms/{name}"));
        assert!((info.volume - 0.028).abs() < 1e-15);
        assert_eq!(
            info.bounding_box,
            Some([[-0.7, 0.0, 0.0], [1.3, 0.7, 0.02]])
        );
    }
    for (name, volume) in [("hex20.msh", 2.0), ("hex20.inp", 2.0), ("tet10.msh", 1.0)] {
        let (_, info) = open(&folder, &format!("13-hex20-output-order/{name}"));
        assert!(
            (info.volume - volume).abs() < 1e-12,
            "{name} {}",
            info.volume
        );
    }
    for (name, n) in [("one_hex.inp", 1), ("one_hex.msh", 1), ("three_hex.msh", 3)] {
        assert_eq!(
            open(&folder, &format!("24-more-ranks-than-elements/{name}"))
                .1
                .n_elements,
            n
        );
    }
}

#[test]
fn sets_of_decks_that_broke_other_programs() {
    let Some(folder) = folder() else { return };
    let folder = folder.join("bugs");
    let (file, _) = open(&folder, "08-inp-include-gapped-ids/main.inp");
    let nodes = &file.mesh.sets.nodes;
    let counts = ["EndFace", "x0", "y0", "z0"].map(|name| nodes[name].len());
    assert_eq!((file.mesh.n_nodes(), counts), (12, [4, 4, 6, 6]));
    assert_eq!(file.mesh.cell_ids, [500, 1000]);

    let (file, _) = open(&folder, "10-inp-sets-of-sets/sets.inp");
    let sets = &file.mesh.sets;
    let counts =
        ["Eall", "first", "odd", "one", "mix", "Everything"].map(|name| sets.cells[name].len());
    assert_eq!(counts, [6, 2, 3, 1, 5, 6]);
    assert_eq!(sets.cells["mix"], [0, 1, 3, 4, 5]);
    assert_eq!((sets.nodes["n_a"].len(), sets.nodes.len()), (4, 2));
    let n_b: Vec<u64> = sets.nodes["n_b"]
        .iter()
        .map(|&k| file.mesh.node_ids[k as usize])
        .collect();
    assert_eq!(n_b, [1, 7, 8, 15, 22, 28]);
}
