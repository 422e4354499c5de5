//! `DataFile`: an HDF5 file that all ranks of a group fill together, each with its rows of every dataset.
//!
//! Under MPI every rank has the file open and all write at once, metadata and data collectively. A group of threads,
//! and a build without MPI, pass their rows to rank 0, which writes them; the datasets come out the same.
//!
//! Invariant: knows datasets of numbers and who has which rows; nothing of what they mean.
#![allow(unsafe_code)]

use super::WriteOptions;
use bytemuck::Pod;
use fem_mesh::{Comm, Error, Result};
use hdf5::dataset::{AllocTime, FillTime};
use hdf5::file::LibraryVersion;
use hdf5::types::FixedAscii;
use hdf5::{Dataset, Dataspace, Datatype, File, H5Type, Selection};
use hdf5_metno_sys::h5d::H5Dwrite;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{H5Pclose, H5Pcreate};
use std::ops::Range;
use std::path::Path;

/// Rows of a chunk of a compressed dataset.
const CHUNK_ROWS: usize = 32_768;

type Hdf5Result<T> = std::result::Result<T, hdf5::Error>;

/// An HDF5 file being written by all ranks.
pub(super) struct DataFile {
    /// Open on every rank if `collective`, else on rank 0 only.
    file: Option<File>,
    collective: bool,
    transfer: TransferList,
    options: WriteOptions,
}

/// The rows of one frame of a dataset, rank after rank.
#[derive(Clone)]
struct Rows {
    /// Rows of earlier frames.
    before: usize,
    /// Whether the dataset has two dimensions.
    is_matrix: bool,
    /// Number of rows of each rank.
    counts: Vec<usize>,
    /// Values in a row.
    columns: usize,
    /// Rows written or sent at a time.
    per_piece: usize,
}

impl Rows {
    /// The rows of a frame that begins at a row.
    fn after(&self, before: usize) -> Rows {
        Rows {
            before,
            ..self.clone()
        }
    }

    fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Row of the dataset at which the rows of `rank` begin.
    fn first_of(&self, rank: usize) -> usize {
        self.before + self.counts[..rank].iter().sum::<usize>()
    }

    fn n_pieces(&self, rank: usize) -> usize {
        self.counts[rank].div_ceil(self.per_piece)
    }

    /// Piece `k` of the rows of `rank`, counted from its first; empty beyond the last piece.
    fn piece(&self, rank: usize, k: usize) -> Range<usize> {
        let count = self.counts[rank];
        (k * self.per_piece).min(count)..((k + 1) * self.per_piece).min(count)
    }

    /// The values of some rows, of all values of a rank.
    fn slice<'a, T>(&self, values: &'a [T], rows: &Range<usize>) -> &'a [T] {
        &values[rows.start * self.columns..rows.end * self.columns]
    }
}

impl DataFile {
    /// Collective. Creates the file; its name must be free.
    pub(super) fn create(comm: &Comm, path: &Path, options: WriteOptions) -> Result<Self> {
        let collective = has_parallel_hdf5(comm);
        let opened = if collective || comm.is_root() {
            open(comm, path).map(Some)
        } else {
            Ok(None)
        };
        let file = agree(comm, opened)?;
        let transfer = agree(comm, TransferList::new(collective))?;
        Ok(DataFile {
            file,
            collective,
            transfer,
            options,
        })
    }

    /// Collective. Does the same to the metadata of the file on every rank that has it open.
    pub(super) fn describe(
        &self,
        comm: &Comm,
        action: impl Fn(&File) -> Hdf5Result<()>,
    ) -> Result<()> {
        agree(comm, self.file.as_ref().map_or(Ok(()), action))
    }

    /// Collective. Creates a dataset of the rows of all ranks, in the order of ranks, and writes it. `values` holds
    /// this rank's rows of `columns` values each; with one column the dataset has one dimension, else two.
    pub(super) fn put<T: H5Type + Pod>(
        &self,
        comm: &Comm,
        name: &str,
        columns: usize,
        values: &[T],
    ) -> Result<()> {
        self.put_frame(comm, name, columns, values, (0, 1))
    }

    /// Collective. As [`DataFile::put`] with one column, but the dataset has two dimensions.
    pub(super) fn put_column<T: H5Type + Pod>(
        &self,
        comm: &Comm,
        name: &str,
        values: &[T],
    ) -> Result<()> {
        let rows = Rows {
            is_matrix: true,
            ..self.rows::<T>(comm, 1, values.len())
        };
        self.write(comm, name, &rows, values, (0, 1))
    }

    /// Collective. As [`DataFile::put`], for one frame (number, how many there are): the dataset has the rows of all, and
    /// is created with the first.
    pub(super) fn put_frame<T: H5Type + Pod>(
        &self,
        comm: &Comm,
        name: &str,
        columns: usize,
        values: &[T],
        frame: (usize, usize),
    ) -> Result<()> {
        let rows = self.rows::<T>(comm, columns, values.len());
        self.write(comm, name, &rows, values, frame)
    }

    /// Collective. Who has which rows.
    fn rows<T>(&self, comm: &Comm, columns: usize, n_values: usize) -> Rows {
        let counts = comm.all_gather(&[(n_values / columns) as u64]);
        Rows {
            before: 0,
            counts: counts.iter().map(|c| c[0] as usize).collect(),
            columns,
            is_matrix: columns > 1,
            per_piece: (self.options.max_piece_bytes / (columns * size_of::<T>())).max(1),
        }
    }

    fn write<T: H5Type + Pod>(
        &self,
        comm: &Comm,
        name: &str,
        rows: &Rows,
        values: &[T],
        (frame, n_frames): (usize, usize),
    ) -> Result<()> {
        let opened = self.file.as_ref().map(|file| match frame {
            0 => create_dataset::<T>(file, name, rows, n_frames, self.options.deflate),
            _ => file.dataset(name),
        });
        let dataset = agree(comm, opened.transpose())?;
        let rows = rows.after(frame * rows.total());
        match (&dataset, self.collective) {
            (Some(dataset), true) => self.write_together(comm, dataset, &rows, values),
            _ => self.write_by_root(comm, dataset.as_ref(), &rows, values),
        }
    }

    /// Collective. Every rank writes its rows; ranks that have fewer pieces than others join in with no rows.
    fn write_together<T: H5Type>(
        &self,
        comm: &Comm,
        dataset: &Dataset,
        rows: &Rows,
        values: &[T],
    ) -> Result<()> {
        let me = comm.rank();
        let n_rounds = (0..comm.n_ranks())
            .map(|r| rows.n_pieces(r))
            .max()
            .unwrap_or(0);
        for k in 0..n_rounds {
            let piece = rows.piece(me, k);
            let first = rows.first_of(me) + piece.start;
            agree(
                comm,
                self.transfer
                    .write(dataset, first, rows, rows.slice(values, &piece)),
            )?;
        }
        Ok(())
    }

    /// Collective. Rank 0 writes the rows of all; at any time the rows of one rank at most are on their way to it.
    fn write_by_root<T: H5Type + Pod>(
        &self,
        comm: &Comm,
        dataset: Option<&Dataset>,
        rows: &Rows,
        values: &[T],
    ) -> Result<()> {
        for source in 0..comm.n_ranks() {
            let mut written = Ok(());
            for k in 0..rows.n_pieces(source) {
                let piece = rows.piece(source, k);
                let received;
                let part = if source == 0 {
                    // Others have other rows, and nothing to write to.
                    let mine = if comm.is_root() { piece.clone() } else { 0..0 };
                    rows.slice(values, &mine)
                } else {
                    received = pass_to_root(comm, source, piece.len() * rows.columns, || {
                        rows.slice(values, &piece)
                    });
                    &received
                };
                if let (Some(dataset), Ok(())) = (dataset, &written) {
                    let first = rows.first_of(source) + piece.start;
                    written = self.transfer.write(dataset, first, rows, part);
                }
            }
            agree(comm, written)?;
        }
        Ok(())
    }

    /// Collective. Hands the file to the operating system, complete, and closes it.
    pub(super) fn close(mut self, comm: &Comm) -> Result<()> {
        agree(comm, self.file.as_ref().map_or(Ok(()), File::flush))?;
        agree(comm, self.file.take().map_or(Ok(()), File::close))
    }
}

/// Collective. The `n_values` values of `source`, on rank 0; nothing elsewhere.
fn pass_to_root<'a, T: Pod>(
    comm: &Comm,
    source: usize,
    n_values: usize,
    values: impl FnOnce() -> &'a [T],
) -> Vec<T> {
    let me = comm.rank();
    let sends = if me == source {
        vec![(0, values())]
    } else {
        Vec::new()
    };
    let receives = if me == 0 {
        vec![(source, n_values)]
    } else {
        Vec::new()
    };
    let exchange = comm.start_exchange(&sends, &receives);
    comm.finish_exchange(exchange).pop().unwrap_or_default()
}

/// Collective. Passes a result on if all ranks succeeded, else the same message on every rank.
fn agree<T>(comm: &Comm, result: Hdf5Result<T>) -> Result<T> {
    let result = result.map_err(|e| {
        let advice = "see that the disk has room and that the directory can be written";
        Error::machine(format!("cannot write the results: {e}")).advice(advice)
    });
    comm.all_ok(result)
}

#[cfg(feature = "mpi")]
fn has_parallel_hdf5(comm: &Comm) -> bool {
    comm.raw_mpi().is_some()
}

#[cfg(not(feature = "mpi"))]
fn has_parallel_hdf5(_: &Comm) -> bool {
    false
}

/// Creates the file; collective if HDF5 is parallel here.
fn open(comm: &Comm, path: &Path) -> Hdf5Result<File> {
    let mut builder = File::with_options();
    builder.with_fapl(|list| {
        #[cfg(feature = "mpi")]
        if let Some(mpi) = comm.raw_mpi() {
            list.mpio(mpi, None)
                .coll_metadata_write(true)
                .all_coll_metadata_ops(true);
        }
        #[cfg(not(feature = "mpi"))]
        let _ = comm;
        // Newer versions of the format are refused by the viewers in use.
        list.libver_bounds(LibraryVersion::Earliest, LibraryVersion::V110)
    });
    builder.create_excl(path)
}

/// Creates a dataset without time stamps: the same results are the same bytes.
fn create_dataset<T: H5Type>(
    file: &File,
    name: &str,
    rows: &Rows,
    n_frames: usize,
    deflate: u8,
) -> Hdf5Result<Dataset> {
    let total = n_frames * rows.total();
    let shape = if rows.is_matrix {
        vec![total, rows.columns]
    } else {
        vec![total]
    };
    let mut builder = file.new_dataset_builder().empty::<T>().shape(shape.clone());
    // HDF5 knows no chunks of an empty dataset.
    if deflate > 0 && total > 0 {
        let mut chunk = shape;
        chunk[0] = total.min(CHUNK_ROWS);
        builder = builder.chunk(chunk).shuffle().deflate(deflate);
    }
    builder
        .alloc_time(Some(AllocTime::Early))
        .fill_time(FillTime::Never)
        .obj_track_times(false)
        .create(name)
}

/// Sets the attributes by which VTK recognizes a file: an unstructured grid, of version 1.0 with one frame,
/// of 2.0 with several.
pub(super) fn mark_as_vtkhdf(file: &File, n_frames: usize) -> Hdf5Result<()> {
    let group = file.create_group("VTKHDF")?;
    group
        .new_attr::<i64>()
        .shape(2)
        .create("Version")?
        .write_raw(&[if n_frames > 1 { 2i64 } else { 1 }, 0])?;
    // Fixed length, ASCII, no terminator: ParaView 5.11 refuses every other kind of string.
    let kind = FixedAscii::<16>::from_ascii(b"UnstructuredGrid").map_err(|e| e.to_string())?;
    group
        .new_attr::<FixedAscii<16>>()
        .create("Type")?
        .write_scalar(&kind)?;
    group.create_group("PointData")?;
    group.create_group("CellData")?;
    Ok(())
}

/// Makes the groups that say which rows are of which frame.
pub(super) fn mark_steps(file: &File, n_frames: usize) -> Hdf5Result<()> {
    let group = file.create_group("VTKHDF/Steps")?;
    group
        .new_attr::<i64>()
        .create("NSteps")?
        .write_scalar(&(n_frames as i64))?;
    group.create_group("PointDataOffsets")?;
    group.create_group("CellDataOffsets")?;
    Ok(())
}

/// How HDF5 moves values between memory and file; the safe interface of the crate has no collective writes.
struct TransferList(hid_t);

impl TransferList {
    fn new(collective: bool) -> Hdf5Result<Self> {
        // SAFETY: the class is one of HDF5's own, and the library is started by its first use.
        let id = hdf5::sync::sync(|| unsafe { H5Pcreate(*hdf5::globals::H5P_DATASET_XFER) });
        if id < 0 {
            return Err(last_error());
        }
        let list = TransferList(id);
        #[cfg(feature = "mpi")]
        if collective {
            use hdf5_metno_sys::h5p::{H5FD_mpio_xfer_t::H5FD_MPIO_COLLECTIVE, H5Pset_dxpl_mpio};
            // SAFETY: `list` is a valid transfer list.
            let code =
                hdf5::sync::sync(|| unsafe { H5Pset_dxpl_mpio(list.0, H5FD_MPIO_COLLECTIVE) });
            if code < 0 {
                return Err(last_error());
            }
        }
        #[cfg(not(feature = "mpi"))]
        let _ = collective;
        Ok(list)
    }

    /// Writes whole rows from row `first` of the dataset on; collective if the list is, then also with no values.
    fn write<T: H5Type>(
        &self,
        dataset: &Dataset,
        first: usize,
        layout: &Rows,
        values: &[T],
    ) -> Hdf5Result<()> {
        let n = values.len();
        let columns = layout.columns;
        // Without values the range is empty: it selects nothing, at no place.
        let rows = if n == 0 {
            0..0
        } else {
            first..first + n / columns
        };
        let selection: Selection = if layout.is_matrix {
            (rows, 0..columns).into()
        } else {
            rows.into()
        };
        let in_file = dataset.space()?.select(selection)?;
        let in_memory = Dataspace::try_new(n.max(1))?.select(0..n)?;
        let value = Datatype::from_type::<T>()?;
        // SAFETY: all handles are valid; the memory space selects exactly the elements of `values`, whose type `value`
        // describes, and as many as the selection in the file.
        let code = hdf5::sync::sync(|| unsafe {
            H5Dwrite(
                dataset.id(),
                value.id(),
                in_memory.id(),
                in_file.id(),
                self.0,
                values.as_ptr().cast(),
            )
        });
        if code < 0 { Err(last_error()) } else { Ok(()) }
    }
}

impl Drop for TransferList {
    fn drop(&mut self) {
        // SAFETY: the list was created here and is closed once.
        hdf5::sync::sync(|| unsafe { H5Pclose(self.0) });
    }
}

/// What HDF5 says of its last call.
fn last_error() -> hdf5::Error {
    hdf5::Error::query().unwrap_or_else(|e| e)
}
