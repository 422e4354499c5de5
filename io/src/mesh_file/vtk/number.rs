//! Number types of VTK arrays, and numbers from their bytes or their text.
//!
//! Invariant: never allocates more than the bytes at hand call for.

use super::super::scan::{parse_float, parse_signed, shown};
use fem_mesh::{Error, Result};

/// The type of the numbers of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Number {
    /// By its name in XML or legacy files, in any spelling of capitals.
    pub(super) fn from_name(name: &str) -> Option<Number> {
        Some(match name.to_ascii_lowercase().as_str() {
            "int8" | "char" | "signed_char" | "vtktypeint8" => Number::I8,
            "uint8" | "unsigned_char" | "vtktypeuint8" => Number::U8,
            "int16" | "short" | "vtktypeint16" => Number::I16,
            "uint16" | "unsigned_short" | "vtktypeuint16" => Number::U16,
            // Legacy files hold vtkIdType as int, whatever its size in memory.
            "int32" | "int" | "vtktypeint32" | "vtkidtype" => Number::I32,
            "uint32" | "unsigned_int" | "vtktypeuint32" => Number::U32,
            "int64" | "long" | "vtktypeint64" => Number::I64,
            "uint64" | "unsigned_long" | "vtktypeuint64" => Number::U64,
            "float32" | "float" | "vtktypefloat32" => Number::F32,
            "float64" | "double" | "vtktypefloat64" => Number::F64,
            _ => return None,
        })
    }

    /// Bytes of one number.
    pub(super) fn size(self) -> usize {
        match self {
            Number::I8 | Number::U8 => 1,
            Number::I16 | Number::U16 => 2,
            Number::I32 | Number::U32 | Number::F32 => 4,
            Number::I64 | Number::U64 | Number::F64 => 8,
        }
    }

    pub(super) fn is_whole(self) -> bool {
        !matches!(self, Number::F32 | Number::F64)
    }

    /// Whole numbers from bytes; floating ones are cut off. A number beyond 63 bits becomes negative.
    pub(super) fn ints(self, bytes: &[u8], big_endian: bool) -> Vec<i64> {
        (bytes.chunks_exact(self.size()))
            .map(|chunk| {
                let (word, bits) = (word(chunk, big_endian), 8 * self.size() as u32);
                match self {
                    Number::F32 => f32::from_bits(word as u32) as i64,
                    Number::F64 => f64::from_bits(word) as i64,
                    Number::I8 | Number::I16 | Number::I32 => {
                        ((word << (64 - bits)) as i64) >> (64 - bits)
                    }
                    _ => word as i64,
                }
            })
            .collect()
    }

    /// Numbers from bytes, finite or not.
    pub(super) fn floats(self, bytes: &[u8], big_endian: bool) -> Vec<f64> {
        match self {
            Number::F32 | Number::F64 => (bytes.chunks_exact(self.size()))
                .map(|chunk| match self {
                    Number::F32 => f64::from(f32::from_bits(word(chunk, big_endian) as u32)),
                    _ => f64::from_bits(word(chunk, big_endian)),
                })
                .collect(),
            _ => (self.ints(bytes, big_endian).into_iter())
                .map(|i| i as f64)
                .collect(),
        }
    }
}

/// Up to eight bytes as one number.
pub(super) fn word(bytes: &[u8], big_endian: bool) -> u64 {
    let join = |word: u64, &byte: &u8| word << 8 | u64::from(byte);
    if big_endian {
        bytes.iter().fold(0, join)
    } else {
        bytes.iter().rev().fold(0, join)
    }
}

/// A whole number from text; `1.0` counts as one.
pub(super) fn parse_int(field: &[u8]) -> Result<i64> {
    let whole = |x: f64| (x == x.trunc() && x.abs() < 9e15).then_some(x as i64);
    parse_signed(field)
        .or_else(|| parse_float(field).and_then(whole))
        .ok_or_else(|| Error::input(format!("not a whole number: `{}`", shown(field))))
}

/// A number from text, finite or not.
pub(super) fn parse_any_float(field: &[u8]) -> Result<f64> {
    parse_float(field)
        .or_else(|| std::str::from_utf8(field).ok()?.parse().ok())
        .ok_or_else(|| Error::input(format!("not a number: `{}`", shown(field))))
}

#[cfg(test)]
mod tests {
    use super::{Number, parse_any_float, parse_int};

    #[test]
    fn numbers_of_both_byte_orders_and_signs() {
        assert_eq!(Number::I16.ints(&[0xff, 0xfe, 0, 1], true), [-2, 1]);
        assert_eq!(Number::I16.ints(&[0xfe, 0xff, 1, 0], false), [-2, 1]);
        assert_eq!(Number::U8.ints(&[255], true), [255]);
        assert_eq!(Number::I8.ints(&[255], true), [-1]);
        assert_eq!(Number::U64.ints(&[255; 8], true), [-1]);
        assert_eq!(Number::F32.floats(&1.5_f32.to_be_bytes(), true), [1.5]);
        assert_eq!(Number::F64.floats(&(-0.1_f64).to_le_bytes(), false), [-0.1]);
        assert_eq!(Number::I32.floats(&7_i32.to_le_bytes(), false), [7.0]);
        assert_eq!(Number::from_name("vtktypeint64"), Some(Number::I64));
        assert_eq!(Number::from_name("String"), None);
        assert_eq!(parse_int(b"3.0").unwrap(), 3);
        assert!(parse_int(b"3.5").is_err() && parse_int(b"x").is_err());
        assert!(parse_any_float(b"nan").unwrap().is_nan());
    }
}
