//! Evenly spaced streamlines of a vector field in the plane, and zero contours of a function.
//!
//! Streamlines follow B. Jobard and W. Lefer (1997) as implemented in matplotlib: at most one line crosses each
//! cell of a grid. Seeds go from the border inward, so that long lines come first. Everything is computed in the
//! unit square, because the axes may have different units.
use std::collections::BTreeMap;

/// Cells along each side, steps of a line per cell, and the minimum length of a line as a share of a side.
const CELLS: usize = 26;
const STEPS: f64 = 12.0;
const SHORTEST: f64 = 0.12;
/// A line that makes this many steps in one cell goes around a zero of the field: a straight one makes at most 17.
const STAY: usize = 48;
/// Cells along each side in the search for zeros.
const FINE: usize = 240;

type Field<'a> = &'a dyn Fn([f64; 2]) -> [f64; 2];

/// A rectangle: ends of x, ends of y.
type Frame = [[f64; 2]; 2];

fn unscaled(frame: Frame, u: [f64; 2]) -> [f64; 2] {
    [0, 1].map(|a| frame[a][0] + u[a] * (frame[a][1] - frame[a][0]))
}

/// Streamlines over a rectangle.
pub(super) fn streamlines(frame: Frame, field: Field) -> Vec<Vec<[f64; 2]>> {
    let direction = |u: [f64; 2]| -> Option<[f64; 2]> {
        let v = field(unscaled(frame, u));
        let w = [0, 1].map(|a| v[a] / (frame[a][1] - frame[a][0]));
        let speed = w[0].hypot(w[1]);
        (speed.is_finite() && speed > 1e-12).then(|| w.map(|c| c / speed))
    };
    let mut taken = vec![false; CELLS * CELLS];
    let mut lines = Vec::new();
    for seed in inwards(CELLS) {
        if taken[seed[1] * CELLS + seed[0]] {
            continue;
        }
        let start = seed.map(|c| (c as f64 + 0.5) / CELLS as f64);
        let mut own = vec![cell(start).expect("invariant: a seed lies inside")];
        let mut line = walk(start, -1.0, &direction, &taken, &mut own);
        line.reverse();
        line.pop();
        line.extend(walk(start, 1.0, &direction, &taken, &mut own));
        if line.len() as f64 / (STEPS * CELLS as f64) >= SHORTEST {
            own.iter().for_each(|&cell| taken[cell] = true);
            lines.push(line.into_iter().map(|u| unscaled(frame, u)).collect());
        }
    }
    lines
}

/// The cell of a point inside the unit square.
fn cell(u: [f64; 2]) -> Option<usize> {
    let [x, y] = u.map(|c| (c * CELLS as f64).floor());
    let inside = |c: f64| (0.0..CELLS as f64).contains(&c);
    (inside(x) && inside(y)).then_some(y as usize * CELLS + x as usize)
}

/// Follows the field from `start`, forward or backward, until the line leaves the square, enters a cell that a line
/// already crosses, reaches a zero of the field, turns back, as it does at a sink, or goes around a zero inside of a cell.
fn walk(
    start: [f64; 2],
    sign: f64,
    direction: &dyn Fn([f64; 2]) -> Option<[f64; 2]>,
    taken: &[bool],
    own: &mut Vec<usize>,
) -> Vec<[f64; 2]> {
    let h = sign / (STEPS * CELLS as f64);
    let (mut u, mut line) = (start, vec![start]);
    let (mut here, mut stayed) = (cell(start), 0);
    while stayed < STAY {
        stayed += 1;
        // The midpoint rule: its error is far below a pixel.
        let step = |v: [f64; 2], part: f64| [u[0] + part * h * v[0], u[1] + part * h * v[1]];
        let Some(next) = direction(u).and_then(|v| direction(step(v, 0.5))).map(|v| step(v, 1.0)) else {
            return line;
        };
        // Two steps of a line that goes on are nearly twice as long as one.
        let turns_back = |before: &[f64; 2]| (next[0] - before[0]).hypot(next[1] - before[1]) < h.abs();
        if line.iter().rev().nth(1).is_some_and(turns_back) {
            return line;
        }
        let there = cell(next);
        if there != here {
            match there {
                Some(there) if !taken[there] && !own.contains(&there) => own.push(there),
                _ => return line,
            }
            (here, stayed) = (there, 0);
        }
        u = next;
        line.push(u);
    }
    line
}

/// All cells `[column, row]`, ring by ring from the border.
fn inwards(cells: usize) -> impl Iterator<Item = [usize; 2]> {
    let ring = move |[x, y]: [usize; 2]| x.min(y).min(cells - 1 - x).min(cells - 1 - y);
    let mut all: Vec<[usize; 2]> = (0..cells * cells).map(|i| [i % cells, i / cells]).collect();
    all.sort_by_key(|&c| (ring(c), c[1], c[0]));
    all.into_iter()
}

/// Zero contours of a function, by linear interpolation along the sides of small squares.
pub(super) fn zeros(frame: Frame, f: &dyn Fn([f64; 2]) -> f64) -> Vec<Vec<[f64; 2]>> {
    let at = |i: usize, j: usize| unscaled(frame, [i as f64 / FINE as f64, j as f64 / FINE as f64]);
    let values: Vec<f64> =
        (0..=FINE).flat_map(|j| (0..=FINE).map(move |i| (i, j))).map(|(i, j)| f(at(i, j))).collect();
    let value = |[i, j]: [usize; 2]| values[j * (FINE + 1) + i];
    // A side is identified by its lower left corner and its direction. A contour crosses it at most once.
    let crossing = |[p, q]: [[usize; 2]; 2]| {
        let (a, b) = (value(p), value(q));
        ((a < 0.0) != (b < 0.0) && a.is_finite() && b.is_finite()).then(|| {
            let (s, from, to) = (a / (a - b), at(p[0], p[1]), at(q[0], q[1]));
            [from[0] + s * (to[0] - from[0]), from[1] + s * (to[1] - from[1])]
        })
    };
    let mut points: BTreeMap<Side, [f64; 2]> = BTreeMap::new();
    let mut joined: BTreeMap<Side, Vec<Side>> = BTreeMap::new();
    for j in 0..FINE {
        for i in 0..FINE {
            let sides = [([i, j], 0), ([i, j], 1), ([i, j + 1], 0), ([i + 1, j], 1)];
            let mut crossed = Vec::new();
            for (corner, axis) in sides {
                let mut end = corner;
                end[axis] += 1;
                if let Some(point) = crossing([corner, end]) {
                    points.insert((corner, axis), point);
                    crossed.push((corner, axis));
                }
            }
            for pair in crossed.chunks_exact(2) {
                joined.entry(pair[0]).or_default().push(pair[1]);
                joined.entry(pair[1]).or_default().push(pair[0]);
            }
        }
    }
    chained(&points, joined)
}

/// A side of a square: its lower left corner, and 0 for x or 1 for y.
type Side = ([usize; 2], usize);

/// Connects joined sides to paths, open paths first.
fn chained(points: &BTreeMap<Side, [f64; 2]>, mut joined: BTreeMap<Side, Vec<Side>>) -> Vec<Vec<[f64; 2]>> {
    let mut paths = Vec::new();
    for ends in [1, 2] {
        let starts: Vec<Side> =
            joined.iter().filter(|(_, to)| to.len() == ends).map(|(side, _)| *side).collect();
        for start in starts {
            let mut path = vec![points[&start]];
            let mut here = start;
            while let Some(next) = joined.get_mut(&here).and_then(Vec::pop) {
                joined.entry(next).and_modify(|back| back.retain(|side| *side != here));
                path.push(points[&next]);
                here = next;
            }
            if path.len() > 1 {
                paths.push(path);
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ode::tests::draw::{Draw, num_cases};

    const FRAME: Frame = [[-2.0, 2.0], [-1.0, 3.0]];

    /// Distance of two points.
    fn apart(p: [f64; 2], q: [f64; 2]) -> f64 {
        (p[0] - q[0]).hypot(p[1] - q[1])
    }

    /// Checks that the steps of lines are equally long, that no line turns back, and that no line is shorter than the
    /// shortest or goes around in a cell more than a few times.
    fn check(lines: &[Vec<[f64; 2]>]) {
        let h = 1.0 / (STEPS * CELLS as f64);
        for line in lines {
            assert!(line.len() as f64 * h >= SHORTEST, "{line:?}");
            assert!(line.windows(2).all(|p| (apart(p[0], p[1]) / h - 1.0).abs() < 1e-6), "{line:?}");
            // At its seed, a line in a field with jumps may have a corner.
            let corners = line.windows(3).filter(|p| apart(p[0], p[2]) < 0.99 * h).count();
            assert!(corners < 2, "{line:?}");
            let (mut here, mut stayed) = (None, 0);
            for &point in line {
                (here, stayed) = if cell(point) == here { (here, stayed + 1) } else { (cell(point), 0) };
                assert!(stayed <= 2 * STAY, "{line:?}");
            }
        }
    }

    /// Linear fields around a random point, coefficients from -1 to 1: sinks, sources, saddles, spirals, centers. Lines
    /// end, no line turns back, and a line comes within two cells of a sink or a source. All lines to a nearly degenerate
    /// one may end at a line that came before.
    #[test]
    fn lines_end_at_zeros_of_linear_fields() {
        let mut draw = Draw(7);
        let (mut drawn, mut spirals) = ([0; 3], 0);
        for case in 0..num_cases(300) {
            let [a, b, c, mut d] = [(); 4].map(|()| draw.uniform(-1.0, 1.0));
            if case % 4 == 0 {
                // A saddle or a center.
                d = -a;
            }
            let center = [(); 2].map(|()| draw.uniform(0.1, 0.9));
            let (trace, determinant): (f64, f64) = (a + d, a * d - b * c);
            let kind = if determinant < 0.0 { 0 } else { 1 + usize::from(trace < 0.0) };
            let is_spiral = trace * trace < 4.0 * determinant;
            (drawn[kind], spirals) = (drawn[kind] + 1, spirals + usize::from(is_spiral));
            let field = |p: [f64; 2]| {
                let [x, y] = [p[0] - center[0], p[1] - center[1]];
                [a * x + b * y, c * x + d * y]
            };
            let lines = streamlines([[0.0, 1.0]; 2], &field);
            check(&lines);
            // Lines around a spiral end where they come into a cell of their own.
            if kind > 0 && !is_spiral {
                let end = |line: &Vec<[f64; 2]>| if kind == 2 { line[line.len() - 1] } else { line[0] };
                let nearest = lines.iter().map(|line| apart(end(line), center)).fold(1.0, f64::min);
                assert!(nearest < 2.0 / CELLS as f64, "{nearest} of a node at {center:?}: {a} {b} {c} {d}");
            }
        }
        assert!(drawn.iter().all(|&count| count > 30) && spirals > 30, "{drawn:?} {spirals}");
    }

    /// Fields that are linear between random values at 2 to 12 knots along each side, and fields that jump there.
    #[test]
    fn lines_end_in_fields_with_kinks_and_jumps() {
        let (mut draw, mut found, cases) = (Draw(8), 0, num_cases(120));
        for case in 0..cases {
            let (knots, jumps) = (2 + case % 11, case % 3 == 0);
            let values: Vec<[f64; 2]> =
                (0..knots * knots).map(|_| [(); 2].map(|()| draw.uniform(-1.0, 1.0))).collect();
            let field = |p: [f64; 2]| {
                let [(i, x), (j, y)] = p.map(|u| {
                    let place = (u * (knots - 1) as f64).clamp(0.0, (knots - 1) as f64);
                    let below = (place as usize).min(knots - 2);
                    (below, if jumps { 0.0 } else { place - below as f64 })
                });
                let value = |i: usize, j: usize, axis: usize| values[j * knots + i][axis];
                [0, 1].map(|axis| {
                    let row = |j| value(i, j, axis) * (1.0 - x) + value(i + 1, j, axis) * x;
                    row(j) * (1.0 - y) + row(j + 1) * y
                })
            };
            let lines = streamlines([[0.0, 1.0]; 2], &field);
            check(&lines);
            found += lines.len();
        }
        assert!(found > 8 * cases, "{found}");
    }

    #[test]
    fn streamlines_follow_the_field_and_cover_the_frame() {
        let lines = streamlines(FRAME, &|[x, y]| [-(y - 1.0), x]);
        assert!((10..80).contains(&lines.len()), "{}", lines.len());
        for line in &lines {
            let radii: Vec<f64> = line.iter().map(|p| p[0].hypot(p[1] - 1.0)).collect();
            assert!(radii.iter().all(|r| (r - radii[0]).abs() < 0.01), "{radii:?}");
        }
        let quarters = [[-1.0, 0.0], [1.0, 0.0], [-1.0, 2.0], [1.0, 2.0]];
        for [x, y] in quarters {
            let near = |p: &&[f64; 2]| (p[0] - x).hypot(p[1] - y) < 0.3;
            assert!(lines.iter().flatten().any(|p| near(&p)), "nothing near {x}, {y}");
        }
    }

    #[test]
    fn a_field_of_zeros_or_nan_has_no_streamlines() {
        assert!(streamlines(FRAME, &|_| [0.0; 2]).is_empty());
        assert!(streamlines(FRAME, &|_| [f64::NAN, 1.0]).is_empty());
    }

    #[test]
    fn zeros_of_a_circle_and_a_line_are_one_path_each() {
        let circle = zeros(FRAME, &|[x, y]| x * x + (y - 1.0) * (y - 1.0) - 1.0);
        assert_eq!(circle.len(), 1);
        assert!(circle[0].iter().all(|p| (p[0].hypot(p[1] - 1.0) - 1.0).abs() < 1e-3));
        assert!(circle[0].len() > 300 && circle[0].first() == circle[0].last());
        let line = zeros(FRAME, &|[x, y]| y - 0.5 * x - 0.123);
        assert_eq!(line.len(), 1);
        assert!(zeros(FRAME, &|_| 1.0).is_empty());
    }
}
