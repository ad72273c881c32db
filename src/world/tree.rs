//! The summation tree over parts. It depends only on their number.
//!
//! An interval of parts is cut at the largest power of two below its length. The order of a sum therefore
//! does not depend on how the parts are distributed: a rank adds the subtrees in its own range and sends
//! their sums.

use std::ops::Range;

/// The index at which an interval of at least two parts is cut.
pub(crate) fn cut(node: &Range<usize>) -> usize {
    node.start + (node.len().next_power_of_two() >> 1)
}

/// The largest subtrees of `0..parts` within a range, in order.
pub(crate) fn roots(parts: usize, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    gather(0..parts, range, &mut found);
    found
}

fn gather(node: Range<usize>, range: &Range<usize>, found: &mut Vec<Range<usize>>) {
    if node.is_empty() || range.end <= node.start || node.end <= range.start {
        return;
    }
    if range.start <= node.start && node.end <= range.end {
        found.push(node);
        return;
    }
    let at = cut(&node);
    gather(node.start..at, range, found);
    gather(at..node.end, range, found);
}

/// The sum of a node (an interval of parts). `next` is called for nodes in order. It returns the sum of a
/// node, or `None` if `fold` must add the sums of its two subtrees.
pub(crate) fn fold<T, E>(
    node: Range<usize>,
    next: &mut impl FnMut(&Range<usize>) -> Result<Option<T>, E>,
    add: &impl Fn(T, T) -> T,
) -> Result<T, E> {
    if let Some(sum) = next(&node)? {
        return Ok(sum);
    }
    let at = cut(&node);
    let left = fold(node.start..at, next, add)?;
    let right = fold(at..node.end, next, add)?;
    Ok(add(left, right))
}
