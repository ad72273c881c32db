//! Specifications of einsum: parses them and checks them against the operands. The axes of an ellipsis get letters that
//! the specification does not use, so the other modules know letters only.
//!
//! This module uses letters and lengths, not tensors. A set of letters is a [`Letters`] bit set, so that the
//! search for an order compares sets with single instructions.

use std::fmt::Write;
use std::ops::Range;

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
    /// The axes of each operand that have no index: their length 1 broadcasts.
    pub squeezed: Vec<Vec<usize>>,
    lengths: [usize; ALPHABET.len()],
}

impl Spec {
    /// Parses a specification for operands of the given shapes. The error is a message for users.
    pub fn read(text: &str, shapes: &[&[usize]]) -> Result<Spec, String> {
        let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = bare.split_once("->").map_or((&bare[..], None), |(l, r)| (l, Some(r)));
        let written: Vec<Term> = left.split(',').map(Term::read).collect::<Result<_, _>>()?;
        if written.len() != shapes.len() {
            return Err(format!("it has {} operands, but the call has {}", written.len(), shapes.len()));
        }
        let ellipsis = Ellipsis::of(&written, shapes)?;
        let (mut operands, mut squeezed, mut kept) = (vec![], vec![], vec![]);
        for (term, shape) in written.iter().zip(shapes) {
            let gone = ellipsis.broadcast_axes(term, shape);
            kept.push((0..shape.len()).filter(|axis| !gone.contains(axis)).map(|axis| shape[axis]).collect());
            operands.push(ellipsis.indices(term, shape, &gone));
            squeezed.push(gone);
        }
        let lengths = lengths(&operands, &kept)?;
        let result = match right.map(Term::read).transpose()? {
            None => [&ellipsis.letters[..], &implied(&written)].concat(),
            Some(Term { ellipsis: None, .. }) if !ellipsis.letters.is_empty() => {
                return Err("the result must have the ellipsis `...` of the operands".into());
            }
            Some(term) => term.with(&ellipsis.letters),
        };
        for (i, c) in result.iter().enumerate() {
            if !operands.iter().flatten().any(|x| x == c) {
                return Err(format!("index {} of the result is in no operand", *c as char));
            }
            if result[..i].contains(c) {
                return Err(format!("index {} occurs twice in the result", *c as char));
            }
        }
        Ok(Spec { operands, result, squeezed, lengths })
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

/// The indices of one operand, or of the result, as they are written.
#[derive(Clone, Debug)]
struct Term {
    letters: Vec<u8>,
    /// The number of letters before the ellipsis, if there is one.
    ellipsis: Option<usize>,
}

impl Term {
    fn read(text: &str) -> Result<Term, String> {
        let (before, after) = text.split_once("...").map_or((text, None), |(b, a)| (b, Some(a)));
        let all = before.chars().chain(after.unwrap_or_default().chars());
        match all.clone().find(|c| !c.is_ascii_alphabetic()) {
            Some('.') => Err("an ellipsis is `...`, at most one per operand".into()),
            Some(c) => Err(format!("{c:?} is not an index: indices are letters")),
            None => {
                Ok(Term { letters: all.map(|c| c as u8).collect(), ellipsis: after.map(|_| before.len()) })
            }
        }
    }

    /// The indices with these letters in place of the ellipsis.
    fn with(&self, letters: &[u8]) -> Vec<u8> {
        let Some(at) = self.ellipsis else { return self.letters.clone() };
        [&self.letters[..at], letters, &self.letters[at..]].concat()
    }

    /// The axes of the ellipsis in an operand of this shape; none if the shape has too few.
    fn axes(&self, shape: &[usize]) -> Range<usize> {
        let start = self.ellipsis.unwrap_or(0).min(shape.len());
        let count = self.ellipsis.map_or(0, |_| shape.len().saturating_sub(self.letters.len()));
        start..start + count
    }
}

/// The axes for which ellipses stand. They are aligned at the last one, and broadcast.
struct Ellipsis {
    /// Letters that no term uses.
    letters: Vec<u8>,
    lengths: Vec<usize>,
}

impl Ellipsis {
    fn of(terms: &[Term], shapes: &[&[usize]]) -> Result<Ellipsis, String> {
        let parts: Vec<&[usize]> = terms.iter().zip(shapes).map(|(t, shape)| &shape[t.axes(shape)]).collect();
        let depth = parts.iter().map(|part| part.len()).max().unwrap_or(0);
        let is_used = |c: &u8| terms.iter().any(|t| t.letters.contains(c));
        let letters: Vec<u8> = ALPHABET.iter().rev().copied().filter(|c| !is_used(c)).take(depth).collect();
        if letters.len() < depth {
            return Err(format!("no letters are left for the {depth} axes of the ellipsis"));
        }
        let mut lengths = vec![1; depth];
        for part in &parts {
            for (slot, &len) in lengths[depth - part.len()..].iter_mut().zip(*part) {
                if *slot != 1 && len != 1 && *slot != len {
                    return Err(format!("the axes {parts:?} of the ellipses do not broadcast"));
                }
                *slot = if len == 1 { *slot } else { len };
            }
        }
        Ok(Ellipsis { letters, lengths })
    }

    /// The axes of length 1 of an operand that broadcast to another length.
    fn broadcast_axes(&self, term: &Term, shape: &[usize]) -> Vec<usize> {
        let axes = term.axes(shape);
        let first = self.lengths.len() - axes.len();
        let start = axes.start;
        axes.filter(|&axis| shape[axis] == 1 && self.lengths[first + axis - start] != 1).collect()
    }

    /// The indices of the axes of an operand that do not broadcast.
    fn indices(&self, term: &Term, shape: &[usize], gone: &[usize]) -> Vec<u8> {
        let axes = term.axes(shape);
        let first = self.letters.len() - axes.len();
        let start = axes.start;
        let kept = axes.filter(|axis| !gone.contains(axis));
        term.with(&kept.map(|axis| self.letters[first + axis - start]).collect::<Vec<u8>>())
    }
}

/// The result indices if none are given: the letters that occur once, in alphabetical order.
fn implied(operands: &[Term]) -> Vec<u8> {
    let count = |c: u8| operands.iter().flat_map(|t| &t.letters).filter(|&&x| x == c).count();
    let mut once: Vec<u8> =
        operands.iter().flat_map(|t| &t.letters).copied().filter(|&c| count(c) == 1).collect();
    once.sort_unstable();
    once
}

fn lengths(operands: &[Vec<u8>], shapes: &[Vec<usize>]) -> Result<[usize; ALPHABET.len()], String> {
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
        for (&c, &len) in letters.iter().zip(shape) {
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
