//! Files that a mesh file includes.
//!
//! Invariant: knows paths, not what the files mean.

use super::draft::Draft;
use super::read_bytes;
use fem_mesh::{Error, Result};
use std::path::PathBuf;

/// The files being read at present, outermost first.
#[derive(Debug, Default)]
pub(super) struct Open(Vec<PathBuf>);

/// How deep files may include files.
const DEEPEST: usize = 50;

impl Open {
    /// The file at `path` is being read from here on, until [`Open::leave`].
    pub(super) fn enter(&mut self, path: &std::path::Path) {
        self.0
            .push(path.canonicalize().unwrap_or_else(|_| path.to_path_buf()));
    }

    /// The innermost file is read.
    pub(super) fn leave(&mut self) {
        self.0.pop();
    }

    /// Opens the file that file number `from` of the draft calls `name`, beside itself; its number and its bytes.
    ///
    /// # Errors
    /// A file that is missing or includes itself; without a place, which the caller knows.
    pub(super) fn include(
        &self,
        draft: &mut Draft,
        from: u16,
        name: &str,
    ) -> Result<(u16, Vec<u8>)> {
        let from = &draft.files[usize::from(from)];
        let beside = |name: &str| from.with_file_name("").join(name);
        let mut path = beside(name);
        if !path.exists() && name.contains('\\') {
            path = beside(&name.replace('\\', "/"));
        }
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if self.0.contains(&real) || self.0.len() > DEEPEST {
            return Err(Error::input(format!("`{name}` includes itself")));
        }
        if !path.is_file() {
            let error = Error::input(format!("included file `{name}` not found"));
            return Err(error.expected(format!("the file {}", path.display())));
        }
        let Ok(file) = u16::try_from(draft.files.len()) else {
            return Err(Error::input("too many included files"));
        };
        let mut bytes = read_bytes(&path, "included file")?;
        if bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        draft.files.push(path);
        Ok((file, bytes))
    }
}
