//! Reading text by bytes: lines, fields of a line, and numbers as other programs write them.
//!
//! What goes in: the bytes of a whole file. What comes out: fields as slices of them (nothing is copied) and the line
//! they stand in.
//!
//! Invariant: knows no mesh format and no file name; an error carries the line only.

use fem_mesh::{Error, Result};

/// Walks through the bytes of a file, counting lines.
///
/// A record is one line: [`Scanner::field`] never leaves the line that [`Scanner::next_record`] entered.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

/// Blanks within a line; the Windows line end and its end-of-file mark (Ctrl-Z) count as blanks.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x1a | 0x0c)
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Scanner {
            bytes,
            at: 0,
            line: 1,
        }
    }

    /// Line of the next byte, counted from 1.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Position of the next byte.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Bytes not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Skips `n` bytes (at most to the end) without counting lines: for binary data.
    pub(super) fn skip_bytes(&mut self, n: usize) {
        self.at = (self.at + n).min(self.bytes.len());
    }

    /// Skips to behind the next `needle` (which starts with a `$`), counting lines. False, at the end of the file, if
    /// there is none.
    pub(super) fn skip_past(&mut self, needle: &[u8]) -> bool {
        while let Some(&byte) = self.bytes.get(self.at) {
            if byte == b'$' && self.rest().starts_with(needle) {
                self.at += needle.len();
                return true;
            }
            self.line += usize::from(byte == b'\n');
            self.at += 1;
        }
        false
    }

    /// Skips up to the next field on this line or a later one. False at the end of the file.
    pub(super) fn next_record(&mut self) -> bool {
        while let Some(&byte) = self.bytes.get(self.at) {
            if byte == b'\n' {
                self.line += 1;
            } else if !is_blank(byte) {
                return true;
            }
            self.at += 1;
        }
        false
    }

    /// The next field of this line, or `None` at its end.
    pub(super) fn field(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        let rest = self.rest();
        let end = |&byte: &u8| is_blank(byte) || byte == b'\n';
        let length = rest.iter().position(end).unwrap_or(rest.len());
        self.at += length;
        (length > 0).then(|| &rest[..length])
    }

    fn skip_blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(|&b| is_blank(b)) {
            self.at += 1;
        }
    }

    /// The rest of this line without blanks at its ends; the next line becomes the current one.
    pub(super) fn rest_of_line(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let length = rest.iter().position(|&b| b == b'\n');
        self.at += length.map_or(rest.len(), |n| n + 1);
        self.line += usize::from(length.is_some());
        trim(&rest[..length.unwrap_or(rest.len())])
    }

    /// The next field as a whole number, 0 or greater. `what` names it in the message.
    pub(super) fn unsigned(&mut self, what: &str) -> Result<u64> {
        let field = self.required(what)?;
        parse_unsigned(field).ok_or_else(|| self.not(field, "a whole number", what))
    }

    /// The next field as a whole number of either sign.
    pub(super) fn signed(&mut self, what: &str) -> Result<i64> {
        let field = self.required(what)?;
        parse_signed(field).ok_or_else(|| self.not(field, "a whole number", what))
    }

    /// The next field as a finite number.
    pub(super) fn float(&mut self, what: &str) -> Result<f64> {
        let field = self.required(what)?;
        parse_float(field).ok_or_else(|| self.not(field, "a number", what))
    }

    /// Fails if the current line holds another field.
    pub(super) fn end_of_record(&mut self, what: &str) -> Result<()> {
        match self.field() {
            None => Ok(()),
            Some(field) => Err(
                Error::input(format!("`{}` is one field too many", shown(field)))
                    .at_line(self.line)
                    .expected(format!("the end of the line after {what}")),
            ),
        }
    }

    fn required(&mut self, what: &str) -> Result<&'a [u8]> {
        self.field().ok_or_else(|| {
            let ended = if self.at == self.bytes.len() {
                "the file ends"
            } else {
                "the line ends"
            };
            Error::input(format!("{ended} too early"))
                .at_line(self.line)
                .expected(what)
        })
    }

    fn not(&self, field: &[u8], kind: &str, what: &str) -> Error {
        Error::input(format!("not {kind}: `{}`", shown(field)))
            .at_line(self.line)
            .expected(what)
    }
}

/// A field as text for a message, cut to a sensible length.
pub(super) fn shown(field: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = readable(&field[..field.len().min(LONGEST)]);
    if field.len() > LONGEST {
        text + "..."
    } else {
        text
    }
}

/// Bytes as text of one line: what has no place in a line becomes `?`.
pub(super) fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Without blanks (in the sense of this module) and line ends at both ends.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    let blank = |&b: &u8| is_blank(b) || b == b'\n';
    let start = bytes.iter().position(|b| !blank(b)).unwrap_or(bytes.len());
    let end = bytes
        .iter()
        .rposition(|b| !blank(b))
        .map_or(start, |i| i + 1);
    &bytes[start..end]
}

/// A whole number, 0 or greater; a leading `+` is allowed.
pub(crate) fn parse_unsigned(field: &[u8]) -> Option<u64> {
    let digits = field.strip_prefix(b"+").unwrap_or(field);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.checked_sub(b'0').filter(|&d| d < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A whole number of either sign.
pub(super) fn parse_signed(field: &[u8]) -> Option<i64> {
    match field.strip_prefix(b"-") {
        Some(digits) if digits.first() != Some(&b'+') => {
            i64::try_from(parse_unsigned(digits)?).ok().map(|n| -n)
        }
        Some(_) => None,
        None => i64::try_from(parse_unsigned(field)?).ok(),
    }
}

/// A finite number. Besides the usual forms those of Fortran: `1.5D-3` and, without a letter, `1.5-3`.
pub(crate) fn parse_float(field: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(field).ok()?;
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    let number = text.parse().ok().or_else(|| parse_fortran(text))?;
    f64::is_finite(number).then_some(number)
}

fn parse_fortran(text: &str) -> Option<f64> {
    if let Some(letter) = text.find(['d', 'D', 'q', 'Q']) {
        let (mantissa, exponent) = (&text[..letter], &text[letter + 1..]);
        // "D-02", but not "De-02": the exponent itself must be a whole number.
        return parse_with_exponent(mantissa, exponent);
    }
    let sign = text.rfind(['+', '-']).filter(|&i| i > 0)?;
    parse_with_exponent(&text[..sign], &text[sign..])
}

fn parse_with_exponent(mantissa: &str, exponent: &str) -> Option<f64> {
    let exponent: i32 = exponent.parse().ok()?;
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    if !mantissa.chars().all(plain) {
        return None;
    }
    format!("{mantissa}e{exponent}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Scanner, parse_float, parse_signed, parse_unsigned, trim};

    #[test]
    fn numbers_in_every_form_programs_write() {
        for (text, number) in [
            ("1", 1.0),
            ("-7.000-1", -0.7),
            ("-7.000D-01", -0.7),
            ("2.00d-02", 0.02),
            ("+1.5+3", 1500.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e-3", 1e-3),
            ("1E+3", 1e3),
            ("-0", 0.0),
        ] {
            assert_eq!(parse_float(text.as_bytes()), Some(number), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_finite_number_is_refused() {
        for text in [
            "",
            "nan",
            "NaN",
            "-nan",
            "inf",
            "-inf",
            "+infinity",
            "1e999",
            "1,5",
            "abc",
            "0x10",
            "1.3De+00",
            "1-",
            "-",
            "--1",
            "1e5-3",
            "$EndNodes",
            "\u{fffd}",
        ] {
            assert_eq!(parse_float(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(parse_unsigned(b"+12"), Some(12));
        assert_eq!(parse_unsigned(b"18446744073709551615"), Some(u64::MAX));
        for text in ["18446744073709551616", "1.0", "-1", "", "+"] {
            assert_eq!(parse_unsigned(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_signed(b"-12"), Some(-12));
        assert_eq!(parse_signed(b"-+12"), None);
    }

    #[test]
    fn fields_stay_within_their_line() {
        let mut scan = Scanner::new(b" 1\t2 \r\n\r\n 3 4\r\n\x1a");
        assert!(scan.next_record());
        assert_eq!(scan.unsigned("a").unwrap(), 1);
        assert_eq!(scan.unsigned("b").unwrap(), 2);
        assert_eq!(
            scan.unsigned("c").unwrap_err().to_string(),
            "the line ends too early; expected c"
        );
        assert!(scan.next_record());
        assert_eq!((scan.line(), scan.unsigned("d").unwrap()), (3, 3));
        let error = scan.end_of_record("d").unwrap_err();
        assert_eq!(error.line(), Some(3));
        assert!(!scan.next_record());
        assert_eq!(trim(b" a b \r\n"), b"a b");
    }
}
