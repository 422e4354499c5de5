//! The result file read back with HDF5, written on 1 to 4 ranks.
//!
//! Invariant: sees the file only as a reader does, through the names of its datasets.

use super::{
    Field, PartData, RESULTS_FILE, ResultWriter, SERIES_FILE, WriteOptions, write_results,
    write_results_with,
};
use fem_mesh::comm::run_threads;
use fem_mesh::{CellType, Comm, ErrorKind};
use hdf5::File;
use hdf5::types::{FixedAscii, TypeDescriptor};
use std::fs;
use std::path::Path;

/// Rank r's part: a column of r unit tetrahedra (so rank 0 is empty), which share no points.
fn part_of(rank: usize) -> PartData {
    let mut part = PartData::default();
    for cell in 0..rank {
        let at = [rank as f64, 0.0, cell as f64];
        let corner = |d: [f64; 3]| [at[0] + d[0], at[1] + d[1], at[2] + d[2]];
        let corners = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        part.points.extend(corners.map(corner));
        part.push_cell(CellType::Tet4, (0..4).map(|k| 4 * cell as i64 + k));
    }
    let n_points = part.points.len();
    let count = |columns: usize| {
        (0..n_points * columns)
            .map(|k| (100 * rank + k) as f64)
            .collect::<Vec<_>>()
    };
    part.point_fields = vec![
        Field::f64("displacement", 3, count(3)),
        Field::f64("stress", 6, count(6)),
        Field::f64("von_mises", 1, count(1)),
        Field::i64(
            "node_id",
            (0..n_points as i64)
                .map(|k| 1000 * rank as i64 + k)
                .collect(),
        ),
    ];
    part.cell_fields = vec![
        Field::i32("rank", vec![rank as i32; rank]),
        Field::i64(
            "element_id",
            (0..rank as i64).map(|k| 10 * rank as i64 + k).collect(),
        ),
    ];
    part
}

fn read<T: hdf5::H5Type>(file: &File, name: &str) -> Vec<T> {
    file.dataset(&format!("VTKHDF/{name}"))
        .unwrap()
        .read_raw()
        .unwrap()
}

/// The rows of all ranks, one rank after the other.
fn all<T>(n: usize, of: impl Fn(usize, PartData) -> Vec<T>) -> Vec<T> {
    (0..n).flat_map(|rank| of(rank, part_of(rank))).collect()
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn check_contents(path: &Path, n: usize) {
    let file = File::open(path).unwrap();
    let group = file.group("VTKHDF").unwrap();
    let kind = group.attr("Type").unwrap();
    assert_eq!(
        kind.dtype().unwrap().to_descriptor().unwrap(),
        TypeDescriptor::FixedAscii(16)
    );
    assert_eq!(
        kind.read_scalar::<FixedAscii<16>>().unwrap().as_str(),
        "UnstructuredGrid"
    );
    assert_eq!(
        group.attr("Version").unwrap().read_raw::<i64>().unwrap(),
        [1, 0]
    );

    assert_eq!(
        read::<i64>(&file, "NumberOfPoints"),
        all(n, |r, _| vec![4 * r as i64])
    );
    assert_eq!(
        read::<i64>(&file, "NumberOfCells"),
        all(n, |r, _| vec![r as i64])
    );
    assert_eq!(
        read::<i64>(&file, "NumberOfConnectivityIds"),
        all(n, |r, _| vec![4 * r as i64])
    );
    assert_eq!(
        read::<f64>(&file, "Points"),
        all(n, |_, p| p.points.as_flattened().to_vec())
    );
    assert_eq!(
        read::<i64>(&file, "Connectivity"),
        all(n, |_, p| p.connectivity)
    );
    assert_eq!(
        read::<i64>(&file, "Offsets"),
        all(n, |r, _| (0..=r as i64).map(|k| 4 * k).collect())
    );
    assert_eq!(read::<u8>(&file, "Types"), all(n, |r, _| vec![10; r]));

    let stress = file.dataset("VTKHDF/PointData/stress").unwrap();
    assert_eq!(stress.shape(), [all(n, |_, p| p.points).len(), 6]);
    assert_eq!(
        file.dataset("VTKHDF/PointData/von_mises").unwrap().ndim(),
        1
    );
    let expected = all(n, |r, p| {
        (0..6 * p.points.len())
            .map(|k| (100 * r + k) as f64)
            .collect()
    });
    assert_eq!(stress.read_raw::<f64>().unwrap(), expected);
    assert_eq!(
        read::<i64>(&file, "PointData/node_id"),
        all(n, |r, p| (0..p.points.len() as i64)
            .map(|k| 1000 * r as i64 + k)
            .collect())
    );
    assert_eq!(
        read::<i32>(&file, "CellData/rank"),
        all(n, |r, _| vec![r as i32; r])
    );
    for name in [
        "Connectivity",
        "Offsets",
        "NumberOfCells",
        "CellData/element_id",
    ] {
        let dataset = file.dataset(&format!("VTKHDF/{name}")).unwrap();
        assert!(
            dataset.dtype().unwrap().is::<i64>(),
            "{name}: older readers take no other integers"
        );
    }
}

#[test]
fn what_ranks_pass_is_what_the_file_holds() {
    // Pieces of a few bytes take each rank's rows through many messages; the file must not show it.
    let small_pieces = WriteOptions {
        max_piece_bytes: 40,
        ..WriteOptions::default()
    };
    let compressed = WriteOptions {
        deflate: 1,
        ..WriteOptions::default()
    };
    for n in 1..=4 {
        for options in [WriteOptions::default(), small_pieces, compressed] {
            let directory = tempfile::tempdir().unwrap();
            run_threads(n, |comm| {
                let path =
                    write_results_with(comm, directory.path(), &part_of(comm.rank()), options)
                        .unwrap();
                assert_eq!(path, directory.path().join(RESULTS_FILE));
            });
            check_contents(&directory.path().join(RESULTS_FILE), n);
            assert_eq!(names_in(directory.path()), [SERIES_FILE, RESULTS_FILE]);
        }
    }
}

#[test]
fn the_same_results_are_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let write = || {
        run_threads(3, |comm| {
            drop(write_results(comm, directory.path(), &part_of(comm.rank())).unwrap())
        });
        fs::read(directory.path().join(RESULTS_FILE)).unwrap()
    };
    let first = write();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(first == write(), "no time stamps in the file");
}

#[test]
fn the_series_names_the_result_file() {
    let directory = tempfile::tempdir().unwrap();
    write_results(&Comm::alone(), directory.path(), &part_of(0)).unwrap();
    let text = fs::read_to_string(directory.path().join(SERIES_FILE)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["file-series-version"], "1.0");
    assert_eq!(
        json["files"],
        serde_json::json!([{ "name": "results.vtkhdf", "time": 0.0 }])
    );
}

#[test]
fn a_number_that_is_not_finite_is_named_and_the_earlier_file_stays() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(RESULTS_FILE), "earlier").unwrap();
    run_threads(3, |comm| {
        let mut part = part_of(comm.rank());
        if comm.rank() == 2 {
            let mut values = vec![0.0; 3 * part.points.len()];
            values[3 * 5 + 1] = f64::NAN;
            part.point_fields[0] = Field::f64("displacement", 3, values);
        }
        let error = write_results(comm, directory.path(), &part).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Model);
        assert!(
            error
                .to_string()
                .starts_with("`displacement` is not a finite number at node 2005;"),
            "{error}"
        );
    });
    assert_eq!(
        fs::read_to_string(directory.path().join(RESULTS_FILE)).unwrap(),
        "earlier"
    );
    assert_eq!(names_in(directory.path()), [RESULTS_FILE]);
}

#[test]
fn parts_that_do_not_fit_are_refused_on_every_rank() {
    let directory = tempfile::tempdir().unwrap();
    let breaks: [fn(&mut PartData); 5] = [
        |part| part.connectivity[0] = 999,
        |part| part.offsets[0] = 1,
        |part| part.types.truncate(0),
        |part| part.point_fields.truncate(3),
        |part| part.cell_fields[0].components = 2,
    ];
    for break_it in breaks {
        run_threads(2, |comm| {
            let mut part = part_of(comm.rank());
            if comm.rank() == 1 {
                break_it(&mut part);
            }
            assert!(write_results(comm, directory.path(), &part).is_err());
        });
    }
    assert!(names_in(directory.path()).is_empty());
}

#[test]
fn a_failure_to_publish_leaves_no_temporary() {
    let directory = tempfile::tempdir().unwrap();
    // A directory of that name cannot be replaced by a file.
    fs::create_dir(directory.path().join(RESULTS_FILE)).unwrap();
    run_threads(2, |comm| {
        let error = write_results(comm, directory.path(), &part_of(comm.rank())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Machine);
        assert!(error.file().unwrap().ends_with(RESULTS_FILE));
    });
    assert_eq!(names_in(directory.path()), [RESULTS_FILE]);
}

/// Value of component k of the displacement of point p of a rank in a frame.
fn moved(rank: usize, frame: usize, k: usize) -> f64 {
    (1000 * frame + 100 * rank + k) as f64
}

fn write_frames(comm: &Comm, directory: &Path, times: &[f64]) {
    let mut part = part_of(comm.rank());
    part.point_fields.retain(|field| field.name == "node_id");
    let n_values = 3 * part.points.len();
    let n_cells = part.n_cells();
    let options = WriteOptions {
        max_piece_bytes: 40,
        ..WriteOptions::default()
    };
    let mut writer = ResultWriter::create(comm, directory, part, times.len(), options).unwrap();
    for (frame, &time) in times.iter().enumerate() {
        let values = (0..n_values).map(|k| moved(comm.rank(), frame, k));
        let on_points = vec![Field::f64("displacement", 3, values.collect())];
        let on_cells = vec![Field::f64("error_estimate", 1, vec![time; n_cells])];
        writer.write_frame(comm, time, on_points, on_cells).unwrap();
    }
    writer.finish(comm).unwrap();
}

#[test]
fn frames_stand_one_after_the_other_and_views_show_each() {
    let times = [0.5, 1.0, 4.0];
    for n in 1..=4 {
        let directory = tempfile::tempdir().unwrap();
        run_threads(n, |comm| write_frames(comm, directory.path(), &times));
        let of_frame = |frame: usize| {
            all(n, |r, p| {
                (0..3 * p.points.len())
                    .map(|k| moved(r, frame, k))
                    .collect()
            })
        };
        let n_points = all(n, |_, p| p.points).len();
        let n_cells = all(n, |_, p| p.types).len();
        let file = File::open(directory.path().join(RESULTS_FILE)).unwrap();
        let version = file.group("VTKHDF").unwrap().attr("Version").unwrap();
        assert_eq!(version.read_raw::<i64>().unwrap(), [2, 0]);
        let frames: Vec<f64> = (0..3).flat_map(of_frame).collect();
        assert_eq!(read::<f64>(&file, "PointData/displacement"), frames);
        assert_eq!(read::<i64>(&file, "PointData/node_id").len(), n_points);
        assert_eq!(read::<f64>(&file, "Steps/Values"), times);
        for (name, rows) in [
            ("PointDataOffsets/displacement", n_points),
            ("PointDataOffsets/node_id", 0),
            ("CellDataOffsets/error_estimate", n_cells),
            ("CellDataOffsets/rank", 0),
            ("PartOffsets", 0),
            ("PointOffsets", 0),
        ] {
            let expected = [0, rows as i64, 2 * rows as i64];
            assert_eq!(
                read::<i64>(&file, &format!("Steps/{name}")),
                expected,
                "{name}"
            );
        }
        assert_eq!(read::<i64>(&file, "Steps/NumberOfParts"), [n as i64; 3]);
        let offsets = file.dataset("VTKHDF/Steps/CellOffsets").unwrap();
        assert_eq!(offsets.shape(), [3, 1]);
        drop((file, version, offsets));
        if n_points == 0 {
            continue;
        }
        for (frame, &time) in times.iter().enumerate() {
            let view =
                File::open(directory.path().join(format!("results.{frame:06}.hdf"))).unwrap();
            let shown = view.dataset("VTKHDF/PointData/displacement").unwrap();
            assert_eq!(shown.shape(), [n_points, 3]);
            assert_eq!(shown.read_raw::<f64>().unwrap(), of_frame(frame));
            assert_eq!(
                read::<f64>(&view, "CellData/error_estimate"),
                vec![time; n_cells]
            );
            assert_eq!(read::<i64>(&view, "NumberOfPoints").len(), n);
            assert_eq!(read::<f64>(&view, "FieldData/TimeValue"), [time]);
        }
        let series = fs::read_to_string(directory.path().join(SERIES_FILE)).unwrap();
        let series: serde_json::Value = serde_json::from_str(&series).unwrap();
        assert_eq!(
            series["files"][2],
            serde_json::json!({ "name": "results.000002.hdf", "time": 4.0 })
        );
    }
}
