//! Series in a pair of axes: their points, positions, style and names.
use super::{
    PlotError,
    chart::{Chart, Entry, Sample},
    clip,
    color::STREAM,
    sheet::Sheet,
    tags::Tag,
};

/// Opacity of a band, from 0 to 1.
const PALE: f64 = 0.22;
/// Half the width of the ends of an error bar.
const CAP: f64 = 7.0;
/// Length of a dash and of the space after it.
const DASH: [f64; 2] = [16.0, 10.0];
/// Length of an arrowhead, half its width, and the length of a streamline per arrowhead.
const HEAD: [f64; 2] = [17.0, 7.0];
const PER_HEAD: f64 = 260.0;

/// Points and how they are drawn.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Lines {
        paths: Vec<Vec<[f64; 2]>>,
        width: f64,
        opacity: f64,
    },
    Dashed(Vec<Vec<[f64; 2]>>),
    Dots {
        points: Vec<[f64; 2]>,
        width: f64,
    },
    /// `[x, low, high]`.
    Band(Vec<[f64; 3]>),
    /// `[x, y, low, high]`.
    Bars(Vec<[f64; 4]>),
    Streams(Vec<Vec<[f64; 2]>>),
}

impl Shape {
    pub(super) fn dashed(paths: Vec<Vec<[f64; 2]>>) -> Shape {
        Shape::Dashed(paths)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Series {
    pub name: String,
    pub shape: Shape,
    pub color: [u8; 3],
}

impl Series {
    /// The series in axis coordinates; `log` selects the logarithmic axes.
    pub(super) fn placed(&self, log: [bool; 2]) -> Result<Series, PlotError> {
        let number = |index: usize, axis: usize, value: f64| {
            let scaled = if log[axis] { value.log10() } else { value };
            if scaled.is_finite() {
                Ok(scaled)
            } else {
                Err(PlotError::Value { what: "coordinate of point", index, value })
            }
        };
        let point = |(i, p): (usize, &[f64; 2])| Ok([number(i, 0, p[0])?, number(i, 1, p[1])?]);
        let path = |path: &Vec<[f64; 2]>| path.iter().enumerate().map(point).collect::<Result<_, _>>();
        let paths = |paths: &[Vec<[f64; 2]>]| paths.iter().map(path).collect::<Result<Vec<_>, _>>();
        let shape = match &self.shape {
            Shape::Lines { paths: lines, width, opacity } => {
                Shape::Lines { paths: paths(lines)?, width: *width, opacity: *opacity }
            }
            Shape::Dashed(lines) => Shape::Dashed(paths(lines)?),
            Shape::Streams(lines) => Shape::Streams(paths(lines)?),
            Shape::Dots { points, width } => Shape::Dots { points: path(points)?, width: *width },
            Shape::Band(points) => {
                let point = |(i, p): (usize, &[f64; 3])| {
                    Ok([number(i, 0, p[0])?, number(i, 1, p[1])?, number(i, 1, p[2])?])
                };
                Shape::Band(points.iter().enumerate().map(point).collect::<Result<_, _>>()?)
            }
            Shape::Bars(points) => {
                let point = |(i, p): (usize, &[f64; 4])| {
                    Ok([number(i, 0, p[0])?, number(i, 1, p[1])?, number(i, 1, p[2])?, number(i, 1, p[3])?])
                };
                Shape::Bars(points.iter().enumerate().map(point).collect::<Result<_, _>>()?)
            }
        };
        Ok(Series { name: self.name.clone(), shape, color: self.color })
    }

    /// All coordinates along an axis that affect its limits.
    pub(super) fn extent(&self, axis: usize) -> Vec<f64> {
        match &self.shape {
            Shape::Lines { paths, .. } | Shape::Dashed(paths) => {
                paths.iter().flatten().map(|p| p[axis]).collect()
            }
            Shape::Dots { points, .. } => points.iter().map(|p| p[axis]).collect(),
            Shape::Band(points) if axis == 0 => points.iter().map(|p| p[0]).collect(),
            Shape::Band(points) => points.iter().flat_map(|p| [p[1], p[2]]).collect(),
            Shape::Bars(points) if axis == 0 => points.iter().map(|p| p[0]).collect(),
            Shape::Bars(points) => points.iter().flat_map(|p| [p[1], p[2], p[3]]).collect(),
            Shape::Streams(_) => Vec::new(),
        }
    }

    fn paths(&self) -> &[Vec<[f64; 2]>] {
        match &self.shape {
            Shape::Lines { paths, .. } | Shape::Dashed(paths) => paths,
            _ => &[],
        }
    }

    /// The last point of the last curve.
    pub(super) fn last(&self) -> Option<[f64; 2]> {
        self.paths().last()?.last().copied()
    }

    /// Curves and points on the screen, which names must not cover.
    pub(super) fn on_screen(&self, chart: &Chart) -> Vec<Vec<[f64; 2]>> {
        match &self.shape {
            Shape::Dots { points, .. } => points.iter().map(|p| vec![chart.at(*p)]).collect(),
            Shape::Bars(points) => {
                points.iter().map(|p| vec![chart.at([p[0], p[2]]), chart.at([p[0], p[3]])]).collect()
            }
            _ => self.paths().iter().map(|path| chart.on_screen(path)).collect(),
        }
    }

    pub(super) fn sample(&self) -> Sample {
        match &self.shape {
            Shape::Dots { width, .. } => Sample::Dot(*width),
            Shape::Bars(_) => Sample::Dot(9.0),
            Shape::Band(_) => Sample::Band,
            _ => Sample::Line,
        }
    }

    pub(super) fn entry(&self) -> Entry {
        Entry { name: self.name.clone(), color: self.color, sample: self.sample() }
    }

    /// The name, and the points of the visible curves beside which it may be placed, best first.
    pub(super) fn tag(&self, chart: &Chart) -> Tag {
        let seen =
            self.paths().iter().rev().flat_map(|path| clip::pieces(&chart.on_screen(path), chart.bounds()));
        let seen: Vec<_> = seen.filter(|piece| !piece.is_empty()).collect();
        let ends = seen.iter().map(|p| p[p.len() - 1]).chain(seen.iter().map(|p| p[0]));
        let middles = seen.iter().flat_map(|p| [p[p.len() / 2], p[p.len() / 4], p[3 * p.len() / 4]]);
        Tag { name: self.name.clone(), ends: ends.chain(middles).collect(), color: self.color }
    }

    pub(super) fn draw(&self, chart: &mut Chart) {
        let color = self.color;
        match &self.shape {
            Shape::Lines { paths, width, opacity } => {
                paths.iter().for_each(|path| chart.translucent(path, *width, color, *opacity));
            }
            Shape::Dashed(paths) => paths.iter().for_each(|path| dashed(chart, path, color)),
            Shape::Dots { points, width } => points.iter().for_each(|p| chart.dot(*p, *width, color)),
            Shape::Band(points) => chart.band(points, color, PALE),
            Shape::Bars(points) => points.iter().for_each(|p| error_bar(chart, *p, color)),
            Shape::Streams(paths) => {
                for path in paths {
                    let (path, bounds) = (chart.on_screen(path), chart.bounds());
                    streamline(&mut chart.sheet, bounds, &path, (2.4, STREAM));
                }
            }
        }
    }
}

fn dashed(chart: &mut Chart, path: &[[f64; 2]], color: [u8; 3]) {
    for piece in clip::pieces(&chart.on_screen(path), chart.bounds()) {
        for dash in dashes(&piece) {
            chart.sheet.curve(&dash, 3.5, color, 1.0);
        }
    }
}

/// A path split into dashes.
pub(super) fn dashes(path: &[[f64; 2]]) -> Vec<Vec<[f64; 2]>> {
    let (mut found, mut gone) = (Vec::new(), 0.0);
    let mut open: Option<Vec<[f64; 2]>> = None;
    for ends in path.windows(2) {
        let [p, q] = [ends[0], ends[1]];
        let length = (q[0] - p[0]).hypot(q[1] - p[1]);
        let mut at = 0.0;
        while at < length {
            let phase = gone % (DASH[0] + DASH[1]);
            let is_dash = phase < DASH[0];
            let left = if is_dash { DASH[0] - phase } else { DASH[0] + DASH[1] - phase };
            let step = left.max(1e-6).min(length - at);
            let place = |s: f64| [p[0] + s / length * (q[0] - p[0]), p[1] + s / length * (q[1] - p[1])];
            if is_dash {
                open.get_or_insert_with(|| vec![place(at)]).push(place(at + step));
            } else {
                found.extend(open.take());
            }
            (at, gone) = (at + step, gone + step);
        }
    }
    found.extend(open);
    found
}

fn error_bar(chart: &mut Chart, [x, y, low, high]: [f64; 4], color: [u8; 3]) {
    chart.curve(&[[x, low], [x, high]], 3.0, color);
    for end in [low, high] {
        let at = chart.at([x, end]);
        if clip::holds(chart.bounds(), at) {
            chart.sheet.curve(&[[at[0] - CAP, at[1]], [at[0] + CAP, at[1]]], 3.0, color, 1.0);
        }
    }
    chart.dot([x, y], 11.0, color);
}

/// The first part of a path inside the axes as a pale line, with an arrowhead at its end or, if it is long, several
/// arrowheads along it.
pub(super) fn streamline(
    sheet: &mut Sheet,
    bounds: clip::Bounds,
    path: &[[f64; 2]],
    (width, color): (f64, [u8; 3]),
) {
    let pieces = clip::pieces(path, bounds);
    let Some(piece) = pieces.first().filter(|piece| piece.len() > 1) else { return };
    let mut along = vec![0.0];
    for ends in piece.windows(2) {
        along.push(along[along.len() - 1] + (ends[1][0] - ends[0][0]).hypot(ends[1][1] - ends[0][1]));
    }
    let length = along[along.len() - 1];
    sheet.curve(piece, width, color, 1.0);
    let heads = (length / PER_HEAD).round() as usize;
    let places: Vec<f64> = match heads {
        0 | 1 if length < PER_HEAD => vec![length],
        _ => (0..heads).map(|k| length * (k as f64 + 0.5) / heads as f64).collect(),
    };
    for place in places {
        let i = along.partition_point(|s| *s < place - 1e-9).clamp(1, piece.len() - 1);
        // The direction of a part as long as the arrowhead, so that a short segment does not turn it.
        let before = along[..i].iter().rposition(|s| *s < place - HEAD[0]).unwrap_or(0);
        arrowhead(sheet, piece[before], piece[i], color);
    }
}

fn arrowhead(sheet: &mut Sheet, from: [f64; 2], tip: [f64; 2], color: [u8; 3]) {
    let d = [tip[0] - from[0], tip[1] - from[1]];
    let length = d[0].hypot(d[1]);
    if length < 1e-9 {
        return;
    }
    // An arrowhead as long as the line would hide it.
    let [long, half] = HEAD.map(|v| v * (length / HEAD[0]).min(1.0));
    let [u, v] = d.map(|c| c / length);
    let back = [tip[0] - long * u, tip[1] - long * v];
    let side = |s: f64| [back[0] - s * v, back[1] + s * u];
    sheet.area(&[tip, side(half), side(-half)], color, 1.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_go_on_over_the_corners_of_a_path() {
        let straight = dashes(&[[0.0, 0.0], [100.0, 0.0]]);
        let cornered = dashes(&[[0.0, 0.0], [50.0, 0.0], [50.0, 50.0]]);
        assert_eq!((straight.len(), cornered.len()), (4, 4));
        assert_eq!(straight[1], [[26.0, 0.0], [42.0, 0.0]]);
        assert_eq!(cornered[2].first(), Some(&[50.0, 2.0]));
        let long = |dash: &[[f64; 2]]| {
            dash.windows(2).map(|p| (p[1][0] - p[0][0]).hypot(p[1][1] - p[0][1])).sum::<f64>()
        };
        assert!(cornered[..3].iter().all(|dash| (long(dash) - DASH[0]).abs() < 1e-4));
    }
}
