//! The bytes behind an XML array: base64 or raw, compressed or not.
//!
//! Behind a head (the number of bytes; or of blocks, their size, the size of the last and the compressed sizes) come
//! the bytes. In base64 the head of compressed data is encoded on its own.
//! Source: "VTK XML Formats", section on appended and binary data, and the writer of VTK 9.
//!
//! Invariant: no allocation is larger than what the encoded bytes at hand can hold.

use super::number::word;
use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use fem_mesh::{Error, Result};
use std::borrow::Cow;
use std::io::Read;

/// How the file writes binary arrays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    pub(super) big_endian: bool,
    /// Bytes of a number of the heads: 4 or 8.
    pub(super) head_size: usize,
    /// By zlib.
    pub(super) compressed: bool,
    pub(super) base64: bool,
}

/// Base64 with or without padding at the end.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

impl Encoding {
    /// The bytes of the array that starts `source`; what follows it is left alone.
    pub(super) fn decode(self, source: &[u8]) -> Result<Vec<u8>> {
        let mut source = Source {
            encoding: self,
            rest: Cow::Borrowed(if self.base64 {
                source.trim_ascii()
            } else {
                source
            }),
        };
        if self.base64 && source.rest.iter().any(u8::is_ascii_whitespace) {
            source.rest.to_mut().retain(|b| !b.is_ascii_whitespace());
        }
        if self.compressed {
            source.compressed()
        } else {
            source.plain()
        }
    }
}

struct Source<'a> {
    encoding: Encoding,
    rest: Cow<'a, [u8]>,
}

impl Source<'_> {
    fn plain(&mut self) -> Result<Vec<u8>> {
        let head_size = self.encoding.head_size;
        if !self.encoding.base64 {
            let head = self.rest.get(..head_size).ok_or_else(cut_off)?;
            let length = self.number(head);
            let end = length
                .and_then(|n| n.checked_add(head_size))
                .ok_or_else(cut_off)?;
            return Ok(self.rest.get(head_size..end).ok_or_else(cut_off)?.to_vec());
        }
        // Most writers encode head and data in one piece, some each on its own, which ends the head.
        let head_chars = base64_length(head_size);
        let head_text = self.rest.get(..head_chars).ok_or_else(cut_off)?;
        let head = decode_base64(head_text)?;
        let is_apart = head.len() == head_size;
        let length = self.number(head.get(..head_size).ok_or_else(cut_off)?);
        let length = length.ok_or_else(cut_off)?;
        if is_apart {
            let text = self.rest.get(head_chars..).and_then(|t| prefix(t, length));
            return decode_base64(text.ok_or_else(cut_off)?);
        }
        let whole = length
            .checked_add(head_size)
            .and_then(|n| prefix(&self.rest, n));
        let mut bytes = decode_base64(whole.ok_or_else(cut_off)?)?;
        bytes.drain(..head_size.min(bytes.len()));
        Ok(bytes)
    }

    fn compressed(&mut self) -> Result<Vec<u8>> {
        let size = self.encoding.head_size;
        let (n_blocks, block_size, last_size) = {
            let head = self.start(3 * size)?;
            let numbers = head.chunks_exact(size).map(|c| self.number(c));
            match numbers.collect::<Option<Vec<usize>>>().as_deref() {
                Some(&[a, b, c]) => (a, b, c),
                _ => return Err(cut_off()),
            }
        };
        if n_blocks == 0 {
            return Ok(Vec::new());
        }
        let head_bytes = n_blocks
            .checked_add(3)
            .and_then(|n| n.checked_mul(size))
            .ok_or_else(cut_off)?;
        let head = self.start(head_bytes)?;
        let sizes: Option<Vec<usize>> = head[3 * size..]
            .chunks_exact(size)
            .map(|c| self.number(c))
            .collect();
        let sizes = sizes.ok_or_else(cut_off)?;
        let total = sizes
            .iter()
            .try_fold(0_usize, |sum, &n| sum.checked_add(n))
            .ok_or_else(cut_off)?;
        let packed = if self.encoding.base64 {
            let text = self
                .rest
                .get(base64_length(head_bytes)..)
                .and_then(|t| prefix(t, total));
            decode_base64(text.ok_or_else(cut_off)?)?
        } else {
            let end = head_bytes.checked_add(total).ok_or_else(cut_off)?;
            self.rest.get(head_bytes..end).ok_or_else(cut_off)?.to_vec()
        };
        let mut bytes = Vec::new();
        let mut start = 0;
        for (block, &size) in sizes.iter().enumerate() {
            let is_last = block + 1 == n_blocks && last_size > 0;
            let expected = if is_last { last_size } else { block_size };
            let end = (start + size).min(packed.len());
            inflate(&packed[start..end], expected, &mut bytes).map_err(|what| {
                Error::input(format!("compressed block {block} (from 0): {what}"))
            })?;
            start = end;
        }
        Ok(bytes)
    }

    /// The first `n` bytes.
    fn start(&self, n: usize) -> Result<Vec<u8>> {
        if self.encoding.base64 {
            let text = prefix(&self.rest, n).ok_or_else(cut_off)?;
            let mut bytes = decode_base64(text)?;
            if bytes.len() < n {
                return Err(cut_off());
            }
            bytes.truncate(n);
            Ok(bytes)
        } else {
            Ok(self.rest.get(..n).ok_or_else(cut_off)?.to_vec())
        }
    }

    fn number(&self, bytes: &[u8]) -> Option<usize> {
        usize::try_from(word(bytes, self.encoding.big_endian)).ok()
    }
}

/// Adds what the block holds to `bytes`, which must be `expected` bytes.
fn inflate(block: &[u8], expected: usize, bytes: &mut Vec<u8>) -> std::result::Result<(), String> {
    let before = bytes.len();
    let limit = (expected as u64).saturating_add(1);
    let mut decoder = flate2::read::ZlibDecoder::new(block).take(limit);
    decoder
        .read_to_end(bytes)
        .map_err(|error| error.to_string())?;
    match bytes.len() - before {
        n if n == expected => Ok(()),
        n if n < expected => Err(format!("{n} bytes, not {expected} as its head says")),
        _ => Err(format!("more than the {expected} bytes that its head says")),
    }
}

/// Characters that encode `n` bytes.
fn base64_length(n: usize) -> usize {
    n.div_ceil(3).saturating_mul(4)
}

/// The characters that encode the first `n` bytes; the last of a text may lack its padding.
fn prefix(text: &[u8], n: usize) -> Option<&[u8]> {
    let least = n.saturating_mul(4).div_ceil(3);
    (least <= text.len()).then(|| &text[..base64_length(n).min(text.len())])
}

fn decode_base64(text: &[u8]) -> Result<Vec<u8>> {
    BASE64
        .decode(text)
        .map_err(|error| Error::input(format!("not base64: {error}")))
}

fn cut_off() -> Error {
    Error::input("the data end too early").advice("the file may be cut off: write it again")
}
