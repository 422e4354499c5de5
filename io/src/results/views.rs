//! View files: one small VTKHDF 1.0 file a frame, `results.000000.hdf`, ..., by which ParaView 5.10 and 5.11, which know
//! files of one frame only, play results of several. Nothing is copied: the mesh is linked to, and each field is a virtual
//! dataset onto its rows in `results.vtkhdf`, named without a directory so that a moved folder still opens.
//!
//! Invariant: written by one process when the result file is complete.

use super::RESULTS_FILE;
use crate::atomic::Unfinished;
use fem_mesh::{Error, Result};
use hdf5::file::LibraryVersion;
use hdf5::types::FixedAscii;
use hdf5::{File, Hyperslab, Selection, SliceOrIndex};
use std::path::Path;

/// A field as a view shows it.
pub(super) struct View {
    /// Below `/VTKHDF`.
    pub(super) path: String,
    /// Rows of one frame.
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Whether it is the same in all frames.
    pub(super) is_constant: bool,
}

fn name_of(frame: usize) -> String {
    format!("results.{frame:06}.hdf")
}

/// Writes the view of every frame; returns their names.
pub(super) fn write_views(directory: &Path, times: &[f64], views: &[View]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for (frame, &time) in times.iter().enumerate() {
        let name = name_of(frame);
        let path = directory.join(&name);
        let unfinished = Unfinished::new(&path);
        write_view(unfinished.temporary(), (frame, times.len()), time, views).map_err(|e| {
            Error::machine(format!("cannot write the view of a frame: {e}"))
                .in_file(&path)
                .advice("see that the disk has room and that the directory can be written")
        })?;
        unfinished.publish()?;
        names.push(name);
    }
    Ok(names)
}

/// Removes the views that an earlier result of more frames left; what cannot be removed does no harm.
pub(super) fn remove_old_views(directory: &Path, n_frames: usize) {
    let mut frame = n_frames;
    while std::fs::remove_file(directory.join(name_of(frame))).is_ok() {
        frame += 1;
    }
}

fn write_view(
    path: &Path,
    (frame, n_frames): (usize, usize),
    time: f64,
    views: &[View],
) -> hdf5::Result<()> {
    let mut builder = File::with_options();
    builder.with_fapl(|list| list.libver_bounds(LibraryVersion::Earliest, LibraryVersion::V110));
    let file = builder.create_excl(path)?;
    let root = file.create_group("VTKHDF")?;
    root.new_attr::<i64>()
        .shape(2)
        .create("Version")?
        .write_raw(&[1i64, 0])?;
    let kind = FixedAscii::<16>::from_ascii(b"UnstructuredGrid").map_err(|e| e.to_string())?;
    root.new_attr::<FixedAscii<16>>()
        .create("Type")?
        .write_scalar(&kind)?;
    for name in [
        "NumberOfPoints",
        "NumberOfCells",
        "NumberOfConnectivityIds",
        "Points",
        "Connectivity",
        "Offsets",
        "Types",
    ] {
        root.link_external(RESULTS_FILE, &format!("/VTKHDF/{name}"), name)?;
    }
    for group in ["PointData", "CellData", "FieldData"] {
        root.create_group(group)?;
    }
    for view in views {
        let target = format!("/VTKHDF/{}", view.path);
        // A virtual dataset needs rows.
        if view.is_constant || view.rows == 0 {
            let (group, name) = view.path.split_once('/').unwrap_or(("", &view.path));
            root.group(group)?
                .link_external(RESULTS_FILE, &target, name)?;
            continue;
        }
        let shape = |rows: usize| match view.columns {
            1 => vec![rows],
            n => vec![rows, n],
        };
        let of_rows = |first: usize| -> Selection {
            let part = |start: usize, count: usize| SliceOrIndex::SliceCount {
                start,
                step: 1,
                count,
                block: 1,
            };
            let mut parts = vec![part(first, view.rows)];
            if view.columns > 1 {
                parts.push(part(0, view.columns));
            }
            Selection::Hyperslab(Hyperslab::from(parts))
        };
        // Fields that change are quantities.
        root.new_dataset_builder()
            .empty::<f64>()
            .shape(shape(view.rows))
            .virtual_map(
                RESULTS_FILE,
                &target,
                shape(n_frames * view.rows),
                of_rows(frame * view.rows),
                shape(view.rows),
                of_rows(0),
            )
            .create(view.path.as_str())?;
    }
    root.new_dataset_builder()
        .with_data(&[time])
        .create("FieldData/TimeValue")?;
    file.close()
}
