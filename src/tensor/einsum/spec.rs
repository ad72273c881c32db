//! Specifications of einsum: parses them and checks them against the operands.
//!
//! This module uses letters and lengths, not tensors. A set of letters is a [`Letters`] bit set, so that the
//! search for an order compares sets with single instructions.

use std::fmt::Write;

/// The letters that may be indices.
const ALPHABET: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A set of indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Letters(pub u64);

impl Letters {
    pub fn of(term: &[u8]) -> Letters {
        Letters(term.iter().filter_map(|&c| position(c)).fold(0, |bits, i| bits | 1 << i))
    }

    pub fn has(self, letter: u8) -> bool {
        position(letter).is_some_and(|i| self.0 >> i & 1 == 1)
    }

    pub fn or(self, other: Letters) -> Letters {
        Letters(self.0 | other.0)
    }

    pub fn and(self, other: Letters) -> Letters {
        Letters(self.0 & other.0)
    }
}

fn position(letter: u8) -> Option<usize> {
    ALPHABET.iter().position(|&c| c == letter)
}

/// A parsed einsum: the indices of each operand and of the result, and their lengths.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub operands: Vec<Vec<u8>>,
    pub result: Vec<u8>,
    lengths: [usize; ALPHABET.len()],
}

impl Spec {
    /// Parses a specification for operands of the given shapes. The error is a message for users.
    pub fn read(text: &str, shapes: &[&[usize]]) -> Result<Spec, String> {
        let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = bare.split_once("->").map_or((&bare[..], None), |(l, r)| (l, Some(r)));
        let operands: Vec<Vec<u8>> = left.split(',').map(term).collect::<Result<_, _>>()?;
        if operands.len() != shapes.len() {
            return Err(format!("it has {} operands, but the call has {}", operands.len(), shapes.len()));
        }
        let lengths = lengths(&operands, shapes)?;
        let result = right.map_or_else(|| Ok(implied(&operands)), term)?;
        for (i, c) in result.iter().enumerate() {
            if !operands.iter().flatten().any(|x| x == c) {
                return Err(format!("index {} of the result is in no operand", *c as char));
            }
            if result[..i].contains(c) {
                return Err(format!("index {} occurs twice in the result", *c as char));
            }
        }
        Ok(Spec { operands, result, lengths })
    }

    /// The length of an index.
    pub fn len(&self, letter: u8) -> usize {
        position(letter).map_or(1, |i| self.lengths[i])
    }

    /// The lengths of a term's indices.
    pub fn shape(&self, term: &[u8]) -> Vec<usize> {
        term.iter().map(|&c| self.len(c)).collect()
    }

    /// The number of elements of an array with these indices; saturates at `usize::MAX`.
    pub fn size(&self, letters: Letters) -> usize {
        let mut size = 1usize;
        let mut bits = letters.0;
        while bits != 0 {
            size = size.saturating_mul(self.lengths[bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
        size
    }
}

/// The indices of one operand, or of the result.
fn term(text: &str) -> Result<Vec<u8>, String> {
    match text.chars().find(|c| !c.is_ascii_alphabetic()) {
        Some(c) => Err(format!("{c:?} is not an index: indices are letters")),
        None => Ok(text.bytes().collect()),
    }
}

/// The result indices if none are given: those that occur once, in alphabetical order.
fn implied(operands: &[Vec<u8>]) -> Vec<u8> {
    let count = |c: u8| operands.iter().flatten().filter(|&&x| x == c).count();
    let mut once: Vec<u8> = operands.iter().flatten().copied().filter(|&c| count(c) == 1).collect();
    once.sort_unstable();
    once
}

fn lengths(operands: &[Vec<u8>], shapes: &[&[usize]]) -> Result<[usize; ALPHABET.len()], String> {
    let mut known: [Option<(usize, usize)>; ALPHABET.len()] = [None; ALPHABET.len()];
    let name = |k: usize| {
        let mut text = format!("operand {k} (");
        operands[k].iter().for_each(|&c| text.push(c as char));
        let _ = write!(text, ": {:?})", shapes[k]);
        text
    };
    for (k, (letters, shape)) in operands.iter().zip(shapes).enumerate() {
        if letters.len() != shape.len() {
            return Err(format!("{} has {} indices for {} axes", name(k), letters.len(), shape.len()));
        }
        for (&c, &len) in letters.iter().zip(*shape) {
            let slot = &mut known[position(c).expect("invariant: a term has letters only")];
            let &mut (first, from) = slot.get_or_insert((len, k));
            if first != len {
                let c = c as char;
                return Err(format!("index {c} is {first} in {} but {len} in {}", name(from), name(k)));
            }
        }
    }
    Ok(known.map(|k| k.map_or(1, |(len, _)| len)))
}
