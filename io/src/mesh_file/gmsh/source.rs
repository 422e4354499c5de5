//! `Source`: the numbers of a Gmsh section, from text or from binary data of either byte order.
//!
//! Invariant: never allocates by a count that the file claims.

use super::super::draft::Place;
use super::super::scan::{Scanner, shown};
use fem_mesh::{Error, Result};

/// Reads numbers one after another. In text a record is a line (see [`Scanner`]) unless `across_lines` is set.
pub(super) struct Source<'a> {
    pub(super) scan: Scanner<'a>,
    pub(super) binary: bool,
    big_endian: bool,
    /// In text, numbers may stand on any line.
    pub(super) across_lines: bool,
    /// Name of the current section, for messages.
    pub(super) section: String,
}

impl<'a> Source<'a> {
    pub(super) fn new(scan: Scanner<'a>) -> Self {
        Source {
            scan,
            binary: false,
            big_endian: false,
            across_lines: false,
            section: String::new(),
        }
    }

    /// Turns to binary by the number 1 that a binary file starts with.
    pub(super) fn start_binary(&mut self) -> Result<()> {
        self.binary = true;
        match self.take()? {
            [1, 0, 0, 0] => self.big_endian = false,
            [0, 0, 0, 1] => self.big_endian = true,
            _ => {
                return Err(Error::input("the mark of the byte order is wrong")
                    .expected("the number 1 as four bytes after the header")
                    .advice("the file may have been changed by a transfer in text mode"));
            }
        }
        Ok(())
    }

    /// Where the next number stands.
    pub(super) fn place(&self) -> Place {
        let line = if self.binary { 0 } else { self.scan.line() };
        Place {
            file: 0,
            line: u32::try_from(line).unwrap_or(0),
        }
    }

    /// At most `count`, and no more than fit into the rest of the file at `bytes` each: safe to allocate.
    pub(super) fn at_most(&self, count: u64, bytes: usize) -> usize {
        let fit = self.scan.rest().len() / bytes;
        usize::try_from(count).map_or(fit, |count| count.min(fit))
    }

    /// Goes to the next record. In text the end of the section or of the file is an error.
    pub(super) fn record(&mut self) -> Result<()> {
        if self.binary {
            return Ok(());
        }
        if !self.scan.next_record() {
            return Err(self.cut_off());
        }
        if self.scan.rest().starts_with(b"$") {
            let line = self.scan.line();
            let found = shown(self.scan.rest_of_line());
            return Err(Error::input(format!(
                "section ${} ends too early, at `{found}`",
                self.section
            ))
            .at_line(line)
            .expected("as many entries as the head of the section announces"));
        }
        Ok(())
    }

    /// In text the line must end here.
    pub(super) fn end_of_record(&mut self, what: &str) -> Result<()> {
        if self.binary {
            Ok(())
        } else {
            self.scan.end_of_record(what)
        }
    }

    /// An int.
    pub(super) fn int(&mut self, what: &str) -> Result<i64> {
        if self.binary {
            let bytes = self.take()?;
            let int = if self.big_endian {
                i32::from_be_bytes(bytes)
            } else {
                i32::from_le_bytes(bytes)
            };
            return Ok(i64::from(int));
        }
        self.start_field()?;
        self.scan.signed(what)
    }

    /// An int that is a number of a node or element, or a count.
    pub(super) fn unsigned_int(&mut self, what: &str) -> Result<u64> {
        if !self.binary {
            self.start_field()?;
            return self.scan.unsigned(what);
        }
        let int = self.int(what)?;
        u64::try_from(int).map_err(|_| {
            Error::input(format!(
                "not a whole number from 0: {int} before byte {} in section ${}",
                self.scan.position(),
                self.section
            ))
            .expected(what)
        })
    }

    /// A size_t.
    pub(super) fn size(&mut self, what: &str) -> Result<u64> {
        if self.binary {
            let bytes = self.take()?;
            return Ok(if self.big_endian {
                u64::from_be_bytes(bytes)
            } else {
                u64::from_le_bytes(bytes)
            });
        }
        self.start_field()?;
        self.scan.unsigned(what)
    }

    /// A finite double.
    pub(super) fn float(&mut self, what: &str) -> Result<f64> {
        if !self.binary {
            return self.scan.float(what);
        }
        let bytes = self.take()?;
        let number = if self.big_endian {
            f64::from_be_bytes(bytes)
        } else {
            f64::from_le_bytes(bytes)
        };
        if number.is_finite() {
            return Ok(number);
        }
        let at = self.scan.position() - 8;
        Err(Error::input(format!(
            "not a number: `{number}` at byte {at} in section ${}",
            self.section
        ))
        .expected(what))
    }

    /// Three finite coordinates.
    pub(super) fn coords(&mut self) -> Result<[f64; 3]> {
        Ok([
            self.float("coordinate x")?,
            self.float("coordinate y")?,
            self.float("coordinate z")?,
        ])
    }

    /// Passes over `n` doubles of no interest.
    pub(super) fn skip_floats(&mut self, n: usize, what: &str) -> Result<()> {
        for _ in 0..n {
            if self.binary {
                self.take::<8>()?;
            } else {
                self.start_field()?;
                if self.scan.field().is_none() {
                    let error = Error::input("the line ends too early").at_line(self.scan.line());
                    return Err(error.expected(what));
                }
            }
        }
        Ok(())
    }

    /// Passes the mark `$End...` of the current section.
    pub(super) fn end_of_section(&mut self) -> Result<()> {
        if !self.scan.next_record() {
            return Err(self.cut_off());
        }
        let line = self.scan.line();
        let found = self.scan.rest_of_line();
        if found.strip_prefix(b"$End") == Some(self.section.as_bytes()) {
            return Ok(());
        }
        let what = format!("section ${} goes on after its last entry", self.section);
        let error = Error::input(what).expected(format!(
            "`$End{}`, found `{}`",
            self.section,
            shown(found)
        ));
        Err(if self.binary {
            error
        } else {
            error.at_line(line)
        })
    }

    /// The file ends inside the section.
    pub(super) fn cut_off(&self) -> Error {
        let error = Error::input(format!("the file ends inside section ${}", self.section))
            .advice("it may be cut off: write it again");
        if self.binary {
            error
        } else {
            error.at_line(self.scan.line())
        }
    }

    fn start_field(&mut self) -> Result<()> {
        if self.across_lines {
            self.record()
        } else {
            Ok(())
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some(&bytes) = self.scan.rest().first_chunk::<N>() else {
            return Err(self.cut_off());
        };
        self.scan.skip_bytes(N);
        Ok(bytes)
    }
}
