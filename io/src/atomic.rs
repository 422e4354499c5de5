//! Files that appear under their final name only when complete, and the output directory they live in.
//!
//! A file is written under a temporary name in the directory it belongs to, brought to the disk, and renamed. An
//! earlier file of that name stays whole until that moment; whatever fails, the temporary is removed.
//!
//! Invariant: knows names and bytes; no formats.

use fem_mesh::{Comm, Error, Result};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes written to find out whether the output directory takes files: one block of usual file systems.
const TRIAL_BYTES: usize = 4096;

/// A file under construction: it has a temporary name, and is removed when dropped without [`Unfinished::publish`].
#[derive(Debug)]
pub(crate) struct Unfinished {
    temporary: PathBuf,
    path: PathBuf,
}

impl Unfinished {
    /// Reserves a temporary name for `path`, unique to this call; creates nothing.
    pub(crate) fn new(path: &Path) -> Self {
        let nanos = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |t| t.as_nanos());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = format!(".{name}.{}-{nanos:x}.partial", std::process::id());
        Unfinished {
            temporary: path.with_file_name(temporary),
            path: path.to_path_buf(),
        }
    }

    /// Where to write.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Last component of [`Unfinished::temporary`].
    pub(crate) fn temporary_name(&self) -> String {
        self.temporary
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// Brings the complete file to the disk and gives it its final name, in place of any earlier one.
    pub(crate) fn publish(self) -> Result<()> {
        let renamed = File::open(&self.temporary)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&self.temporary, &self.path));
        renamed.map_err(|e| disk_error(&self.path, &e))?;
        // The name itself is on the disk once its directory is. Some file systems cannot do that; the file is
        // complete all the same.
        let _ = File::open(parent(&self.path)).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After a rename nothing has the temporary name; otherwise there is nobody to tell that it stays behind.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Writes a text file that is complete as soon as it has its name. Not collective: one rank calls it.
///
/// # Errors
/// Of the machine: the directory is missing or cannot be written, or the disk is full; an earlier file stays as it was.
pub fn write_text_atomically(path: &Path, text: &str) -> Result<()> {
    let unfinished = Unfinished::new(path);
    let written =
        File::create_new(unfinished.temporary()).and_then(|mut f| f.write_all(text.as_bytes()));
    written.map_err(|e| disk_error(path, &e))?;
    unfinished.publish()
}

/// Collective. Creates the output directory if it is missing and tries a file in it, seen by all ranks. Called before
/// the solve, so that no run is lost to a directory that cannot be written.
///
/// # Errors
/// Input: the name, or a part of it, is that of a file. Machine: it cannot be created or written, or some rank runs
/// on a host that does not share it.
pub fn prepare_directory(comm: &Comm, directory: &Path) -> Result<()> {
    let trial = if comm.is_root() {
        try_directory(directory).map(Some)
    } else {
        Ok(None)
    };
    let trial = comm.all_ok(trial)?;
    let name = comm.broadcast_text(
        trial
            .as_ref()
            .map_or_else(String::new, Unfinished::temporary_name),
    );
    let seen = if directory.join(&name).exists() {
        Ok(())
    } else {
        let what = format!(
            "rank {} does not see the files that rank 0 writes here",
            comm.rank()
        );
        let advice = "name a directory on a file system that all hosts share";
        Err(Error::machine(what).in_file(directory).advice(advice))
    };
    comm.all_ok(seen)
}

/// Makes the directory and leaves a trial file in it for as long as the result lives.
fn try_directory(directory: &Path) -> Result<Unfinished> {
    if let Some(file) = directory
        .ancestors()
        .find(|a| a.exists())
        .filter(|a| !a.is_dir())
    {
        return Err(
            Error::input("this is a file, so results cannot be written into it")
                .in_file(file)
                .expected("the name of a directory")
                .advice("remove the file, or name another directory with -o or [output] directory"),
        );
    }
    fs::create_dir_all(directory).map_err(|e| disk_error(directory, &e))?;
    let trial = Unfinished::new(&directory.join("trial"));
    fs::write(trial.temporary(), [0; TRIAL_BYTES]).map_err(|e| disk_error(directory, &e))?;
    Ok(trial)
}

/// Makes sure that the disk has room for a file of `bytes` that is about to be written. On Linux the room is set aside
/// where the file system can do that; the length of the file stays what it is.
///
/// MPI libraries can hang when the disk runs full under a collective write: it has to be found out before.
pub(crate) fn reserve_space(path: &Path, bytes: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    let disk = rustix::fs::fstatvfs(&file)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    // A disk of no size at all is one that does not tell.
    if disk.f_blocks > 0 && free < bytes {
        return Err(ErrorKind::StorageFull.into());
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::{fs::FallocateFlags, io::Errno};
        // Other errors: a file system that cannot set room aside.
        let reserved = rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes.max(1));
        if let Err(error @ (Errno::NOSPC | Errno::DQUOT)) = reserved {
            return Err(error.into());
        }
    }
    Ok(())
}

/// The message for a file or directory that could not be written.
pub(crate) fn disk_error(path: &Path, error: &io::Error) -> Error {
    let advice = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space on this disk",
        _ => "name a directory that can be written with -o or [output] directory",
    };
    Error::machine(format!("cannot be written: {error}"))
        .in_file(path)
        .advice(advice)
}

fn parent(path: &Path) -> &Path {
    path.parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::{Unfinished, prepare_directory, reserve_space, write_text_atomically};
    use fem_mesh::ErrorKind;
    use fem_mesh::comm::run_threads;
    use std::fs;
    use std::path::Path;

    fn names_in(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_text_replaces_an_earlier_one_and_leaves_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("summary.json");
        write_text_atomically(&path, "first").unwrap();
        write_text_atomically(&path, "second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(names_in(directory.path()), ["summary.json"]);
    }

    #[test]
    fn an_unfinished_file_vanishes_and_the_earlier_one_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.vtkhdf");
        fs::write(&path, "earlier").unwrap();
        let unfinished = Unfinished::new(&path);
        fs::write(unfinished.temporary(), "half").unwrap();
        assert_eq!(names_in(directory.path()).len(), 2);
        drop(unfinished);
        assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
        assert_eq!(names_in(directory.path()), ["results.vtkhdf"]);
    }

    #[test]
    fn more_than_the_disk_can_hold_is_refused_and_the_length_stays() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = reserve_space(file.path(), 1 << 60).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        reserve_space(file.path(), 10_000).unwrap();
        assert_eq!(file.as_file().metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_directory_is_made_with_its_parents_and_left_empty() {
        for n in 1..=4 {
            let root = tempfile::tempdir().unwrap();
            let directory = root.path().join("a/b");
            run_threads(n, |comm| {
                prepare_directory(comm, &directory).unwrap();
                prepare_directory(comm, &directory).unwrap();
                comm.barrier();
                assert!(names_in(&directory).is_empty());
            });
        }
    }

    #[test]
    fn a_file_in_place_of_the_directory_is_refused_on_every_rank() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("results");
        fs::write(&file, "").unwrap();
        for directory in [file.clone(), file.join("deeper")] {
            run_threads(3, |comm| {
                let error = prepare_directory(comm, &directory).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Input);
                assert_eq!(error.file(), Some(file.as_path()));
            });
        }
        assert!(file.is_file());
    }

    #[test]
    fn a_place_that_takes_no_files_is_an_error_of_the_machine() {
        // Not even root can make directories in /proc.
        run_threads(2, |comm| {
            let error = prepare_directory(comm, Path::new("/proc/fem-solve-results")).unwrap_err();
            assert_eq!(error.exit_code(), 4, "{error}");
        });
        let error = write_text_atomically(Path::new("/proc/summary.json"), "{}").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Machine);
    }
}
