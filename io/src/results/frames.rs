//! Results of several frames in one file, frame after frame: VTKHDF 2.0 with the group `Steps`.
//!
//! Mesh and constant fields stand in the file once. A field that changes has the rows of all frames one after the other:
//! frame s begins at row s times the number of points, or of cells, of all ranks. `Steps` says so for every field:
//!
//! ```text
//! /VTKHDF/Steps                    attribute NSteps
//!   Values                         [frames], time
//!   PartOffsets, PointOffsets      [frames], all 0; NumberOfParts [frames], the number of ranks
//!   CellOffsets                    [frames, 1], all 0, as ConnectivityIdOffsets
//!   PointDataOffsets/, CellDataOffsets/   a dataset for each field: [frames], its first row
//! ```
//!
//! Invariant: as the module above; holds one frame at a time.

use super::hdf::{self, DataFile};
use super::views::{View, write_views};
use super::{
    Field, METADATA_BYTES, PartData, RESULTS_FILE, SERIES_FILE, Values, WriteOptions, series,
};
use crate::atomic::{
    Unfinished, disk_error, prepare_directory, reserve_space, write_text_atomically,
};
use fem_mesh::{Comm, Result};
use std::path::{Path, PathBuf};

/// A result file that takes one frame after the other.
pub struct ResultWriter {
    directory: PathBuf,
    /// On rank 0.
    unfinished: Option<Unfinished>,
    file: DataFile,
    part: PartData,
    /// How many of the fields of `part` are constant.
    n_constant: [usize; 2],
    n_frames: usize,
    times: Vec<f64>,
}

impl ResultWriter {
    /// Collective. Begins `results.vtkhdf` in `directory`, made if it is missing. The fields of `part` are constant; those
    /// that change come with each of the `n_frames` frames.
    ///
    /// # Errors
    /// As [`super::write_results`].
    pub fn create(
        comm: &Comm,
        directory: &Path,
        part: PartData,
        n_frames: usize,
        options: WriteOptions,
    ) -> Result<Self> {
        part.check(comm)?;
        prepare_directory(comm, directory)?;
        let path = directory.join(RESULTS_FILE);
        let unfinished = comm.is_root().then(|| Unfinished::new(&path));
        let name = unfinished
            .as_ref()
            .map_or_else(String::new, Unfinished::temporary_name);
        let temporary = directory.join(comm.broadcast_text(name));
        let begin = || -> Result<DataFile> {
            let file = DataFile::create(comm, &temporary, options)?;
            reserve(comm, &temporary, part.n_bytes())?;
            file.describe(comm, |file| hdf::mark_as_vtkhdf(file, n_frames))?;
            put_mesh(comm, &file, &part)?;
            Ok(file)
        };
        let file = begin().map_err(|e| e.in_file(&path))?;
        let n_constant = [part.point_fields.len(), part.cell_fields.len()];
        Ok(ResultWriter {
            directory: directory.to_path_buf(),
            unfinished,
            file,
            part,
            n_constant,
            n_frames,
            times: Vec::new(),
        })
    }

    /// Collective. Writes the fields of the next frame, the same ones in every frame.
    ///
    /// # Errors
    /// Model: a quantity is not finite. Machine: the disk is full.
    pub fn write_frame(
        &mut self,
        comm: &Comm,
        time: f64,
        point_fields: Vec<Field>,
        cell_fields: Vec<Field>,
    ) -> Result<()> {
        let [n_points, n_cells] = self.n_constant;
        self.part.point_fields.truncate(n_points);
        self.part.cell_fields.truncate(n_cells);
        self.part.point_fields.extend(point_fields);
        self.part.cell_fields.extend(cell_fields);
        self.part.check(comm)?;
        let frame = self.times.len();
        if frame == 0 {
            let n_bytes = self.part.n_bytes() * self.n_frames as u64;
            let path = self
                .unfinished
                .as_ref()
                .map_or_else(PathBuf::new, |file| file.temporary().to_path_buf());
            reserve(comm, &path, n_bytes)?;
        }
        for (group, fields) in self.changing() {
            for field in fields {
                let name = format!("VTKHDF/{group}/{}", field.name);
                put_field(comm, &self.file, &name, field, (frame, self.n_frames))
                    .map_err(|e| e.in_file(self.directory.join(RESULTS_FILE)))?;
            }
        }
        self.times.push(time);
        Ok(())
    }

    fn changing(&self) -> [(&'static str, &[Field]); 2] {
        let [n_points, n_cells] = self.n_constant;
        [
            ("PointData", &self.part.point_fields[n_points..]),
            ("CellData", &self.part.cell_fields[n_cells..]),
        ]
    }

    /// Collective. Completes the file and gives it its name, in place of an earlier one; then the view files and
    /// `results.hdf.series`. Returns the path of the first.
    ///
    /// # Errors
    /// Machine: the disk is full.
    pub fn finish(mut self, comm: &Comm) -> Result<PathBuf> {
        let path = self.directory.join(RESULTS_FILE);
        if self.n_frames > 1 {
            self.put_steps(comm).map_err(|e| e.in_file(&path))?;
        }
        let views = self.views(comm);
        self.file.close(comm).map_err(|e| e.in_file(&path))?;
        let published = match self.unfinished.take() {
            Some(file) => file
                .publish()
                .and_then(|()| write_series(&self.directory, &self.times, &views)),
            None => Ok(()),
        };
        comm.all_ok(published)?;
        Ok(path)
    }

    /// Collective. The group by which VTK finds the rows of each frame.
    fn put_steps(&self, comm: &Comm) -> Result<()> {
        let n = self.n_frames;
        self.file
            .describe(comm, |file| hdf::mark_steps(file, self.times.len()))?;
        let on_root = |values: Vec<i64>| if comm.is_root() { values } else { Vec::new() };
        let put = |name: &str, values: Vec<i64>| {
            let name = format!("VTKHDF/Steps/{name}");
            self.file.put(comm, &name, 1, &on_root(values))
        };
        let times = if comm.is_root() { &self.times[..] } else { &[] };
        self.file.put(comm, "VTKHDF/Steps/Values", 1, times)?;
        put("PartOffsets", vec![0; n])?;
        put("NumberOfParts", vec![comm.n_ranks() as i64; n])?;
        put("PointOffsets", vec![0; n])?;
        for name in ["CellOffsets", "ConnectivityIdOffsets"] {
            let name = format!("VTKHDF/Steps/{name}");
            self.file.put_column(comm, &name, &on_root(vec![0; n]))?;
        }
        let [n_points, n_cells] = self.totals(comm);
        let part = &self.part;
        for (group, fields, constant, rows) in [
            (
                "PointDataOffsets",
                &part.point_fields,
                self.n_constant[0],
                n_points,
            ),
            (
                "CellDataOffsets",
                &part.cell_fields,
                self.n_constant[1],
                n_cells,
            ),
        ] {
            for (k, field) in fields.iter().enumerate() {
                let step = if k < constant { 0 } else { rows as i64 };
                let offsets = (0..n as i64).map(|s| s * step).collect();
                put(&format!("{group}/{}", field.name), offsets)?;
            }
        }
        Ok(())
    }

    /// Collective. Points and cells of all ranks.
    fn totals(&self, comm: &Comm) -> [usize; 2] {
        let sum = |n: usize| comm.sum_u64(n as u64) as usize;
        [sum(self.part.points.len()), sum(self.part.n_cells())]
    }

    /// Collective. What the view files show.
    fn views(&self, comm: &Comm) -> Vec<View> {
        let totals = self.totals(comm);
        let part = &self.part;
        let mut views = Vec::new();
        for (kind, (group, fields)) in [
            ("PointData", &part.point_fields),
            ("CellData", &part.cell_fields),
        ]
        .into_iter()
        .enumerate()
        {
            views.extend(fields.iter().enumerate().map(|(k, field)| View {
                path: format!("{group}/{}", field.name),
                rows: totals[kind],
                columns: field.components,
                is_constant: k < self.n_constant[kind],
            }));
        }
        views
    }
}

/// Collective. Makes sure of room on the disk for what the ranks are about to write.
fn reserve(comm: &Comm, path: &Path, n_bytes: u64) -> Result<()> {
    let n_bytes = METADATA_BYTES + comm.sum_u64(n_bytes);
    comm.all_ok(if comm.is_root() {
        reserve_space(path, n_bytes).map_err(|e| disk_error(path, &e))
    } else {
        Ok(())
    })
}

/// Collective. The mesh and the constant fields.
fn put_mesh(comm: &Comm, file: &DataFile, part: &PartData) -> Result<()> {
    for (name, count) in [
        ("NumberOfPoints", part.points.len()),
        ("NumberOfCells", part.n_cells()),
        ("NumberOfConnectivityIds", part.connectivity.len()),
    ] {
        file.put(comm, &format!("VTKHDF/{name}"), 1, &[count as i64])?;
    }
    let points = part.points.as_flattened();
    file.put(comm, "VTKHDF/Points", 3, points)?;
    file.put(comm, "VTKHDF/Connectivity", 1, &part.connectivity)?;
    file.put(comm, "VTKHDF/Offsets", 1, &part.offsets)?;
    file.put(comm, "VTKHDF/Types", 1, &part.types)?;
    for (group, fields) in [
        ("PointData", &part.point_fields),
        ("CellData", &part.cell_fields),
    ] {
        for field in fields {
            let name = format!("VTKHDF/{group}/{}", field.name);
            put_field(comm, file, &name, field, (0, 1))?;
        }
    }
    Ok(())
}

/// Collective. The values of one frame of a field; `frame` is its number and that of all.
fn put_field(
    comm: &Comm,
    file: &DataFile,
    name: &str,
    field: &Field,
    frame: (usize, usize),
) -> Result<()> {
    let n = field.components;
    match &field.values {
        Values::F64(values) => file.put_frame(comm, name, n, values, frame),
        Values::I64(values) => file.put_frame(comm, name, n, values, frame),
        Values::I32(values) => file.put_frame(comm, name, n, values, frame),
    }
}

/// Not collective: rank 0. The series of one frame names the result file, that of several a view file for each.
fn write_series(directory: &Path, times: &[f64], views: &[View]) -> Result<()> {
    let names = if times.len() > 1 {
        write_views(directory, times, views)?
    } else {
        vec![RESULTS_FILE.to_owned()]
    };
    let times = if times.is_empty() { &[0.0] } else { times };
    let frames: Vec<(&str, f64)> = names
        .iter()
        .map(String::as_str)
        .zip(times.iter().copied())
        .collect();
    write_text_atomically(&directory.join(SERIES_FILE), &series(&frames))?;
    super::views::remove_old_views(directory, if names.len() > 1 { names.len() } else { 0 });
    Ok(())
}
