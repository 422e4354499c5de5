//! Reading HDF5 files that other programs wrote (MED, netCDF-4), whatever they claim.
//!
//! The library allocates what a dataset's shape says before it looks for the data; so shapes are held against the bytes
//! that the file has for them first.
//!
//! Invariant: knows datasets and attributes by path, nothing of what they mean.

use super::scan::readable;
use fem_mesh::{Error, Result};
use hdf5::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenAscii, VarLenUnicode};
use hdf5::{Dataset, File, H5Type};
use std::path::Path;

/// An HDF5 file open for reading. Errors come without the file's name, which the caller knows.
pub(super) struct HdfFile {
    file: File,
    n_bytes: u64,
}

/// Most times that data can be longer than they are stored: the limit of deflate, with room.
const MOST_COMPRESSED: u64 = 1100;

impl HdfFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let n_bytes = std::fs::metadata(path).map_or(0, |m| m.len());
        let file = File::open(path).map_err(|error| {
            Error::input(format!("not a sound HDF5 file: {}", one_line(&error)))
                .advice("it may be cut off: write it again")
        })?;
        Ok(HdfFile { file, n_bytes })
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.file.link_exists(path) && self.file.loc_type_by_name(path).is_ok()
    }

    /// Names of what a group holds, in order of the names; empty if there is no such group.
    pub(super) fn members(&self, group: &str) -> Vec<String> {
        let names = self.file.group(group).and_then(|g| g.member_names());
        names.unwrap_or_default()
    }

    pub(super) fn shape(&self, path: &str) -> Option<Vec<u64>> {
        let dataset = self.file.dataset(path).ok()?;
        Some(dataset.shape().into_iter().map(|n| n as u64).collect())
    }

    /// A dataset of whole numbers, in the order of storage.
    pub(super) fn ints(&self, path: &str) -> Result<Vec<i64>> {
        let dataset = self.dataset(path)?;
        match dataset.dtype().and_then(|t| t.to_descriptor()) {
            Ok(TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_)) => read(path, &dataset),
            _ => Err(in_dataset(path, "it holds no whole numbers")),
        }
    }

    /// A dataset of floating numbers.
    pub(super) fn floats(&self, path: &str) -> Result<Vec<f64>> {
        let dataset = self.dataset(path)?;
        match dataset.dtype().and_then(|t| t.to_descriptor()) {
            Ok(TypeDescriptor::Float(_)) => read(path, &dataset),
            _ => Err(in_dataset(path, "it holds no floating numbers")),
        }
    }

    /// A dataset of single characters.
    pub(super) fn chars(&self, path: &str) -> Result<Vec<u8>> {
        let dataset = self.dataset(path)?;
        match dataset.dtype().and_then(|t| t.to_descriptor()) {
            Ok(TypeDescriptor::FixedAscii(1)) => {
                let chars: Vec<FixedAscii<1>> = read(path, &dataset)?;
                Ok(chars
                    .iter()
                    .map(|c| c.as_bytes().first().copied().unwrap_or(0))
                    .collect())
            }
            _ => Err(in_dataset(path, "it holds no characters")),
        }
    }

    /// A dataset of texts of 80 bytes.
    pub(super) fn texts_of_80(&self, path: &str) -> Result<Vec<String>> {
        let dataset = self.dataset(path)?;
        match dataset.dtype().and_then(|t| t.to_descriptor()) {
            Ok(TypeDescriptor::FixedArray(of, 80)) if of.size() == 1 => {
                let texts: Vec<[i8; 80]> = read(path, &dataset)?;
                Ok(texts.iter().map(|t| text_of(&t.map(|c| c as u8))).collect())
            }
            _ => Err(in_dataset(path, "it holds no texts of 80 bytes")),
        }
    }

    /// A whole-number attribute of a group.
    pub(super) fn int_attribute(&self, group: &str, name: &str) -> Option<i64> {
        let attribute = self.file.group(group).ok()?.attr(name).ok()?;
        match attribute.dtype().and_then(|t| t.to_descriptor()) {
            Ok(TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_))
                if attribute.size() == 1 =>
            {
                attribute.read_raw::<i64>().ok()?.first().copied()
            }
            _ => None,
        }
    }

    /// A short text attribute of a dataset.
    pub(super) fn text_attribute(&self, dataset: &str, name: &str) -> Option<String> {
        let attribute = self.file.dataset(dataset).ok()?.attr(name).ok()?;
        if attribute.size() != 1 {
            return None;
        }
        match attribute.dtype().and_then(|t| t.to_descriptor()).ok()? {
            TypeDescriptor::FixedAscii(_) => {
                let text = attribute.read_raw::<FixedAscii<64>>().ok()?;
                Some(text_of(text.first()?.as_bytes()))
            }
            TypeDescriptor::FixedUnicode(_) => {
                let text = attribute.read_raw::<FixedUnicode<64>>().ok()?;
                Some(text_of(text.first()?.as_bytes()))
            }
            TypeDescriptor::VarLenAscii => {
                let text = attribute.read_raw::<VarLenAscii>().ok()?;
                Some(text_of(text.first()?.as_bytes()))
            }
            TypeDescriptor::VarLenUnicode => {
                let text = attribute.read_raw::<VarLenUnicode>().ok()?;
                Some(text_of(text.first()?.as_bytes()))
            }
            _ => None,
        }
    }

    /// Opens a dataset whose shape the bytes of the file can fill.
    fn dataset(&self, path: &str) -> Result<Dataset> {
        let dataset = self
            .file
            .dataset(path)
            .map_err(|error| in_dataset(path, &one_line(&error)))?;
        let size = dataset.dtype().map_or(1, |t| t.size()).max(1) as u64;
        let product = |lengths: &[usize]| {
            let lengths = lengths.iter().map(|&n| n as u64);
            lengths.fold(size, u64::saturating_mul)
        };
        let stored = dataset.storage_size();
        let claimed = product(&dataset.shape());
        let chunk = dataset.chunk().map_or(0, |chunk| product(&chunk));
        let most = match dataset.is_chunked() {
            true => stored.saturating_mul(MOST_COMPRESSED),
            false => stored,
        };
        // A chunk may be larger than the data, but hardly larger than a plain file would be.
        if stored > self.n_bytes || claimed > most || chunk > most.max(1 << 24) {
            let what = format!("it claims {claimed} bytes, more than the file holds for it");
            return Err(in_dataset(path, &what).advice("the file may be damaged: write it again"));
        }
        Ok(dataset)
    }
}

fn read<T: H5Type>(path: &str, dataset: &Dataset) -> Result<Vec<T>> {
    dataset
        .read_raw()
        .map_err(|error| in_dataset(path, &one_line(&error)))
}

fn in_dataset(path: &str, what: &str) -> Error {
    Error::input(format!("dataset {path}: {what}"))
}

/// What the library says, without the line ends it may quote from the file.
fn one_line(error: &hdf5::Error) -> String {
    readable(error.to_string().as_bytes())
}

/// Text up to its first zero, without blanks at its ends.
pub(super) fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    readable(&bytes[..end]).trim().to_owned()
}
