//! The one error type of the whole program: what a user did or met, where, and what to do about it.
//!
//! Invariant: knows nothing of meshes or solvers; every message is complete in itself, since rank 0 prints it once.

use std::fmt;
use std::path::{Path, PathBuf};

/// Shorthand for results of this program.
pub type Result<T> = std::result::Result<T, Error>;

/// Kind of failure; decides the exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The solver did not reach its tolerance, or a check of the case failed. Exit code 1.
    NotConverged,
    /// The case, the mesh, the deck or the command line is wrong. Exit code 2.
    Input,
    /// The input is well formed, but the model cannot be solved. Exit code 3.
    Model,
    /// The machine: memory, disk, MPI. Exit code 4.
    Machine,
}

impl ErrorKind {
    /// The documented exit code of the program.
    pub fn exit_code(self) -> i32 {
        match self {
            ErrorKind::NotConverged => 1,
            ErrorKind::Input => 2,
            ErrorKind::Model => 3,
            ErrorKind::Machine => 4,
        }
    }

    fn from_exit_code(code: u8) -> Self {
        match code {
            1 => ErrorKind::NotConverged,
            2 => ErrorKind::Input,
            3 => ErrorKind::Model,
            _ => ErrorKind::Machine,
        }
    }
}

/// A failure with its place, its cause and advice. Displays as
/// `file:line:column: what; expected ...; advice`, leaving out what is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Fields>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fields {
    kind: ErrorKind,
    file: Option<PathBuf>,
    line: Option<usize>,
    column: Option<usize>,
    what: String,
    expected: Option<String>,
    advice: Option<String>,
}

impl Error {
    fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Error(Box::new(Fields {
            kind,
            file: None,
            line: None,
            column: None,
            what: what.into(),
            expected: None,
            advice: None,
        }))
    }

    /// Bad input: exit code 2. `what` says what is wrong, without a final period.
    pub fn input(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, what)
    }

    /// A model that cannot be solved: exit code 3.
    pub fn model(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Model, what)
    }

    /// A failure of the machine (disk, memory, MPI): exit code 4.
    pub fn machine(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Machine, what)
    }

    /// No convergence, or a check failed: exit code 1.
    pub fn not_converged(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotConverged, what)
    }

    /// Names the file in which the problem stands.
    #[must_use]
    pub fn in_file(mut self, file: impl AsRef<Path>) -> Self {
        self.0.file = Some(file.as_ref().to_path_buf());
        self
    }

    /// Names the line, counted from 1.
    #[must_use]
    pub fn at_line(mut self, line: usize) -> Self {
        self.0.line = Some(line);
        self
    }

    /// Names the column, counted from 1.
    #[must_use]
    pub fn at_column(mut self, column: usize) -> Self {
        self.0.column = Some(column);
        self
    }

    /// Names another file and line as the place, without a column.
    #[must_use]
    pub fn moved_to(mut self, file: impl AsRef<Path>, line: usize) -> Self {
        self.0.column = None;
        self.in_file(file).at_line(line)
    }

    /// Keeps of the place the file only.
    #[must_use]
    pub fn without_line(mut self) -> Self {
        self.0.line = None;
        self.0.column = None;
        self
    }

    /// What would have been right ("a number greater than 0").
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    /// What the user can do about it ("did you mean `young`?").
    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.0.advice = Some(advice.into());
        self
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The exit code that the program ends with.
    pub fn exit_code(&self) -> i32 {
        self.0.kind.exit_code()
    }

    /// The file named, if any.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The line named, counted from 1, if any.
    pub fn line(&self) -> Option<usize> {
        self.0.line
    }

    /// Bytes from which [`Error::from_bytes`] on another rank makes the same error.
    pub fn to_bytes(&self) -> Vec<u8> {
        let f = &*self.0;
        let number = |n: Option<usize>| n.map_or(String::new(), |n| n.to_string());
        let text = [
            f.file
                .as_ref()
                .map_or(String::new(), |p| p.to_string_lossy().into_owned()),
            number(f.line),
            number(f.column),
            f.what.clone(),
            f.expected.clone().unwrap_or_default(),
            f.advice.clone().unwrap_or_default(),
        ]
        .join("\u{1f}");
        let mut bytes = vec![f.kind.exit_code() as u8];
        bytes.extend(text.into_bytes());
        bytes
    }

    /// The inverse of [`Error::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let kind = ErrorKind::from_exit_code(bytes.first().copied().unwrap_or(4));
        let text = String::from_utf8_lossy(bytes.get(1..).unwrap_or(&[])).into_owned();
        let mut parts = text.split('\u{1f}').map(str::to_owned);
        let mut next = || parts.next().filter(|s| !s.is_empty());
        let (file, line, column) = (next(), next(), next());
        let what = next().unwrap_or_default();
        let (expected, advice) = (next(), next());
        Error(Box::new(Fields {
            kind,
            file: file.map(PathBuf::from),
            line: line.and_then(|s| s.parse().ok()),
            column: column.and_then(|s| s.parse().ok()),
            what,
            expected,
            advice,
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let f = &*self.0;
        if let Some(file) = &f.file {
            write!(out, "{}:", file.display())?;
            if let Some(line) = f.line {
                write!(out, "{line}:")?;
                if let Some(column) = f.column {
                    write!(out, "{column}:")?;
                }
            }
            write!(out, " ")?;
        }
        write!(out, "{}", f.what)?;
        if let Some(expected) = &f.expected {
            write!(out, "; expected {expected}")?;
        }
        if let Some(advice) = &f.advice {
            write!(out, "; {advice}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn an_error_survives_the_way_to_another_rank() {
        let error = Error::input("unknown key `yuong`")
            .in_file("case.toml")
            .at_line(3)
            .at_column(1)
            .expected("one of `young`, `poisson`")
            .advice("did you mean `young`?");
        assert_eq!(Error::from_bytes(&error.to_bytes()), error);
        assert_eq!(
            error.to_string(),
            "case.toml:3:1: unknown key `yuong`; expected one of `young`, `poisson`; did you mean `young`?"
        );
        let bare = Error::machine("no space left");
        assert_eq!(Error::from_bytes(&bare.to_bytes()), bare);
        assert_eq!(bare.exit_code(), 4);
    }
}
