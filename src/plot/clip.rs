//! The parts of a path inside a rectangle.

/// A rectangle: left, upper, right and lower end.
pub(super) type Bounds = [f64; 4];

/// The pieces of a path inside a rectangle.
pub(super) fn pieces(path: &[[f64; 2]], bounds: Bounds) -> Vec<Vec<[f64; 2]>> {
    if path.len() == 1 {
        return if holds(bounds, path[0]) { vec![path.to_vec()] } else { Vec::new() };
    }
    let mut pieces: Vec<Vec<[f64; 2]>> = Vec::new();
    let mut open = false;
    for ends in path.windows(2) {
        let Some([from, to]) = segment([ends[0], ends[1]], bounds) else {
            open = false;
            continue;
        };
        match pieces.last_mut() {
            Some(piece) if open => piece.push(to),
            _ => pieces.push(vec![from, to]),
        }
        open = to == ends[1];
    }
    pieces
}

pub(super) fn holds([left, top, right, bottom]: Bounds, [x, y]: [f64; 2]) -> bool {
    (left..=right).contains(&x) && (top..=bottom).contains(&y)
}

/// The part of a segment inside a rectangle (Liang and Barsky 1984).
fn segment([p, q]: [[f64; 2]; 2], [left, top, right, bottom]: Bounds) -> Option<[[f64; 2]; 2]> {
    let d = [q[0] - p[0], q[1] - p[1]];
    let (mut from, mut to) = (0.0_f64, 1.0_f64);
    let sides = [(-d[0], p[0] - left), (d[0], right - p[0]), (-d[1], p[1] - top), (d[1], bottom - p[1])];
    for (slope, room) in sides {
        if slope == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if slope < 0.0 {
            from = from.max(room / slope);
        } else {
            to = to.min(room / slope);
        }
    }
    // An end inside the rectangle is returned unchanged, to the bit.
    let at = |s: f64| match s {
        0.0 => p,
        1.0 => q,
        _ => [p[0] + s * d[0], p[1] + s * d[1]],
    };
    (from <= to).then(|| [at(from), at(to)])
}

/// Whether a segment touches a rectangle.
pub(super) fn touches(ends: [[f64; 2]; 2], bounds: Bounds) -> bool {
    segment(ends, bounds).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_clipped_at_all_sides() {
        let path = [[0.0, -10.0], [10.0, 10.0], [20.0, 10.0], [30.0, 50.0], [40.0, 10.0], [60.0, 10.0]];
        let found = pieces(&path, [0.0, 0.0, 50.0, 30.0]);
        assert_eq!(found[0], [[5.0, 0.0], [10.0, 10.0], [20.0, 10.0], [25.0, 30.0]]);
        assert_eq!(found[1], [[35.0, 30.0], [40.0, 10.0], [50.0, 10.0]]);
        assert_eq!(found.len(), 2);
        // Both ends outside, the middle inside.
        assert_eq!(pieces(&[[-10.0, 5.0], [90.0, 5.0]], [0.0, 0.0, 50.0, 30.0]), [[[0.0, 5.0], [50.0, 5.0]]]);
    }

    #[test]
    fn paths_outside_are_dropped() {
        let bounds = [0.0, 0.0, 50.0, 30.0];
        assert!(pieces(&[[-1.0, 40.0], [60.0, 40.0]], bounds).is_empty());
        assert!(pieces(&[[51.0, 5.0]], bounds).is_empty());
        assert_eq!(pieces(&[[50.0, 5.0]], bounds), [[[50.0, 5.0]]]);
    }
}
