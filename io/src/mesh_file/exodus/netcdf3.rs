//! The classic formats of netCDF (CDF-1, CDF-2 with 64-bit offsets, CDF-5): variables of fixed size.
//!
//! Source: "NetCDF Classic Format Specification", Unidata.
//!
//! Invariant: never allocates by a count that the file claims before it has seen that the bytes are there.

use super::super::scan::shown;
use fem_mesh::{Error, Result};
use std::collections::BTreeMap;

/// A variable: its shape, the type of its numbers, where they start, and its texts.
#[derive(Debug)]
struct Variable {
    shape: Vec<u64>,
    kind: u32,
    start: u64,
    texts: BTreeMap<String, String>,
}

/// The variables of a file.
pub(super) struct Classic<'a> {
    bytes: &'a [u8],
    variables: BTreeMap<String, Variable>,
}

/// Walks through the head of the file.
struct Head<'a> {
    bytes: &'a [u8],
    at: usize,
    /// CDF-5: counts have 8 bytes.
    long_counts: bool,
    /// CDF-2 and CDF-5: offsets have 8 bytes.
    long_offsets: bool,
}

/// Bytes of a number of netCDF's type `kind`.
fn size_of(kind: u32) -> Option<usize> {
    Some(match kind {
        1 | 2 | 7 => 1,
        3 | 8 => 2,
        4 | 5 | 9 => 4,
        6 | 10 | 11 => 8,
        _ => return None,
    })
}

const CHAR: u32 = 2;

impl<'a> Classic<'a> {
    /// Reads the head. Errors come without the file.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self> {
        let version = bytes.get(3).copied().unwrap_or(0);
        if !bytes.starts_with(b"CDF") || !matches!(version, 1 | 2 | 5) {
            return Err(Error::input(
                "not a netCDF file of format CDF-1, CDF-2 or CDF-5",
            ));
        }
        let mut head = Head {
            bytes,
            at: 4,
            long_counts: version == 5,
            long_offsets: version > 1,
        };
        head.count()?; // of records, which no mesh is made of
        let mut dimensions = Vec::new();
        for _ in 0..head.list(10)? {
            head.name()?;
            dimensions.push(head.count()?);
        }
        head.attributes()?;
        let mut variables = BTreeMap::new();
        for _ in 0..head.list(11)? {
            let (name, variable) = head.variable(&dimensions)?;
            variables.insert(name, variable);
        }
        Ok(Classic { bytes, variables })
    }

    pub(super) fn shape(&self, name: &str) -> Option<Vec<u64>> {
        self.variables.get(name).map(|v| v.shape.clone())
    }

    pub(super) fn text_attribute(&self, variable: &str, name: &str) -> Option<String> {
        self.variables.get(variable)?.texts.get(name).cloned()
    }

    pub(super) fn ints(&self, name: &str) -> Result<Vec<i64>> {
        let (kind, data) = self.data(name)?;
        let word = |chunk: &[u8]| chunk.iter().fold(0_u64, |w, &b| w << 8 | u64::from(b));
        let ints = data.chunks_exact(size_of(kind).unwrap_or(1));
        match kind {
            1 => Ok(ints.map(|c| i64::from(c[0] as i8)).collect()),
            3 => Ok(ints.map(|c| i64::from(word(c) as i16)).collect()),
            4 => Ok(ints.map(|c| i64::from(word(c) as i32)).collect()),
            7..=11 => Ok(ints.map(|c| word(c) as i64).collect()),
            _ => Err(Error::input(format!(
                "variable `{name}` holds no whole numbers"
            ))),
        }
    }

    pub(super) fn floats(&self, name: &str) -> Result<Vec<f64>> {
        let (kind, data) = self.data(name)?;
        match kind {
            5 => Ok((data.as_chunks::<4>().0.iter())
                .map(|&c| f64::from(f32::from_be_bytes(c)))
                .collect()),
            6 => Ok((data.as_chunks::<8>().0.iter())
                .map(|&c| f64::from_be_bytes(c))
                .collect()),
            _ => Err(Error::input(format!(
                "variable `{name}` holds no floating numbers"
            ))),
        }
    }

    pub(super) fn chars(&self, name: &str) -> Result<Vec<u8>> {
        let (kind, data) = self.data(name)?;
        if kind == CHAR {
            Ok(data.to_vec())
        } else {
            Err(Error::input(format!("variable `{name}` holds no text")))
        }
    }

    fn data(&self, name: &str) -> Result<(u32, &'a [u8])> {
        let Some(variable) = self.variables.get(name) else {
            return Err(Error::input(format!("there is no variable `{name}`")));
        };
        let size = size_of(variable.kind).unwrap_or(1) as u64;
        let n_bytes = (variable.shape.iter()).try_fold(size, |n, &length| n.checked_mul(length));
        let end = n_bytes.and_then(|n| n.checked_add(variable.start));
        let range = |end: u64| {
            let start = usize::try_from(variable.start).ok()?;
            self.bytes.get(start..usize::try_from(end).ok()?)
        };
        match end.and_then(range) {
            Some(data) => Ok((variable.kind, data)),
            None => Err(Error::input(format!(
                "the file ends inside variable `{name}`, which starts at byte {}",
                variable.start
            ))
            .advice("it may be cut off: write it again")),
        }
    }
}

impl<'a> Head<'a> {
    fn take(&mut self, n: u64) -> Result<&'a [u8]> {
        let end = usize::try_from(n).ok().and_then(|n| self.at.checked_add(n));
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(Error::input(format!(
                "the file ends inside its head, at byte {}",
                self.at
            ))
            .advice("it may be cut off: write it again")),
        }
    }

    fn word(&mut self, n: u64) -> Result<u64> {
        Ok(self.take(n)?.iter().fold(0, |w, &b| w << 8 | u64::from(b)))
    }

    fn count(&mut self) -> Result<u64> {
        self.word(if self.long_counts { 8 } else { 4 })
    }

    /// Length of a list of that tag; an absent list has none.
    fn list(&mut self, tag: u64) -> Result<u64> {
        let at = self.at;
        let (found, n) = (self.word(4)?, self.count()?);
        if found == tag || (found, n) == (0, 0) {
            Ok(n)
        } else {
            Err(
                Error::input(format!("a list of kind {found} at byte {at} of the head"))
                    .expected(format!("a list of kind {tag}")),
            )
        }
    }

    /// Bytes with their padding to a multiple of four.
    fn padded(&mut self, n: u64) -> Result<&'a [u8]> {
        let bytes = self.take(n)?;
        self.take(n.wrapping_neg() % 4)?;
        Ok(bytes)
    }

    fn name(&mut self) -> Result<String> {
        let n = self.count()?;
        Ok(shown(self.padded(n)?))
    }

    /// The attributes that are texts.
    fn attributes(&mut self) -> Result<BTreeMap<String, String>> {
        let mut texts = BTreeMap::new();
        for _ in 0..self.list(12)? {
            let name = self.name()?;
            let kind = self.kind()?;
            let size = size_of(kind).unwrap_or(1) as u64;
            let n = self.count()?.saturating_mul(size);
            let value = self.padded(n)?;
            if kind == CHAR {
                texts.insert(name, String::from_utf8_lossy(value).into_owned());
            }
        }
        Ok(texts)
    }

    fn kind(&mut self) -> Result<u32> {
        let at = self.at;
        let kind = self.word(4)? as u32;
        match size_of(kind) {
            Some(_) => Ok(kind),
            None => Err(Error::input(format!(
                "unknown number type {kind} at byte {at} of the head"
            ))),
        }
    }

    fn variable(&mut self, dimensions: &[u64]) -> Result<(String, Variable)> {
        let name = self.name()?;
        let n_dimensions = self.count()?;
        let mut shape = Vec::new();
        for _ in 0..n_dimensions {
            let k = self.count()?;
            let length = usize::try_from(k).ok().and_then(|k| dimensions.get(k));
            let Some(&length) = length else {
                return Err(Error::input(format!(
                    "variable `{name}` has an unknown dimension {k}"
                )));
            };
            shape.push(length);
        }
        let texts = self.attributes()?;
        let kind = self.kind()?;
        self.count()?; // its size in bytes, which the shape tells too
        let start = self.word(if self.long_offsets { 8 } else { 4 })?;
        let variable = Variable {
            shape,
            kind,
            start,
            texts,
        };
        Ok((name, variable))
    }
}
