//! Figures of a solution: components against t, and against each other.
use super::{
    Figure, PlotError,
    chart::{Chart, Layout, Named, Right, Size, padded},
    color::{INK, SERIES, time_color},
    marks::Colors,
    sheet::Anchor,
    tags::{self, Tag},
    trace::{Scales, Trace},
};
#[cfg(feature = "autodiff")]
use crate::adjoint::{TensorSolution, TensorState};
use crate::ode::{AsNumbers, PlainState, Solution};
use std::path::Path;

/// Maximum number of components drawn.
const MOST: usize = SERIES.len();
/// Above this number no saved points are drawn; and the maximum number of events drawn.
const MOST_DOTS: usize = 400;
const MOST_EVENTS: usize = 200;
/// Above this number of components, the y axis does not have their names.
const MOST_ON_AXIS: usize = 3;
/// Number of pieces of constant color in a path colored by time.
const SHADES: usize = 400;

impl<Y: PlainState, O: PlainState> Solution<Y, O> {
    /// Writes [`time_series`] of the components, named y0, y1, ..., as a figure.
    ///
    /// # Errors
    /// As [`time_series`] and [`Figure::save`].
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::{Ode, SaveAt};
    /// let path = std::env::temp_dir().join("flowline-circle.png");
    /// let circle = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]).save_at(SaveAt::dense());
    /// circle.solve(0.0, 10.0, [1.0, 0.0])?.plot(&path)?;
    /// assert_eq!(&std::fs::read(&path).unwrap()[1..4], b"PNG");
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn plot(&self, path: impl AsRef<Path>) -> Result<(), PlotError> {
        time_series(self, &[])?.save(path)
    }

    /// Writes a [`phase_portrait`] of component `j` against component `i`, colored by time.
    ///
    /// # Errors
    /// As [`phase_portrait`] and [`Figure::save`]; [`PlotError::Component`] for an index out of range.
    pub fn plot_phase_portrait(&self, path: impl AsRef<Path>, i: usize, j: usize) -> Result<(), PlotError> {
        plot_phase_portrait(self, path.as_ref(), [i, j])
    }
}

#[cfg(feature = "autodiff")]
impl<Y: TensorState> TensorSolution<Y> {
    /// Writes [`time_series`] of the components, one per element of the state, row by row, as a figure.
    ///
    /// # Errors
    /// As [`time_series`] and [`Figure::save`].
    ///
    /// # Panics
    /// If the solution is traced.
    #[track_caller]
    pub fn plot(&self, path: impl AsRef<Path>) -> Result<(), PlotError> {
        time_series(self, &[])?.save(path)
    }

    /// Writes a [`phase_portrait`] of component `j` against component `i`, colored by time.
    ///
    /// # Errors
    /// As [`phase_portrait`] and [`Figure::save`]; [`PlotError::Component`] for an index out of range.
    ///
    /// # Panics
    /// If the solution is traced.
    #[track_caller]
    pub fn plot_phase_portrait(&self, path: impl AsRef<Path>, i: usize, j: usize) -> Result<(), PlotError> {
        plot_phase_portrait(self, path.as_ref(), [i, j])
    }
}

fn plot_phase_portrait(solution: &impl AsNumbers, path: &Path, ij: [usize; 2]) -> Result<(), PlotError> {
    let components = solution.num_shown();
    if let Some(&index) = ij.iter().find(|&&index| index >= components) {
        return Err(PlotError::Component { index, components });
    }
    let names = ij.map(|i| format!("y{i}"));
    phase_portrait(solution, [&names[0], &names[1]], |y| ij.map(|i| y[i]))?.save(path)
}

/// Components of a solution, of plain states or tensors, against t. Curves are the dense output, or straight lines between saved points. Saved points
/// are drawn as dots if there are at most 400. The first 200 events are vertical lines, with dense output
/// also rings on the curves. `names` are for the first components; component i without a name is named yi. If all drawn
/// components have names and are at most three, the y axis is named by them, otherwise y: `&["height (m)"]` shows the unit.
///
/// Values of a `save_fn` are drawn instead of y. With more than 8 components, 8 are drawn, evenly from first to last.
///
/// # Errors
/// [`PlotError::NoCurve`] for fewer than two saved values without dense output, [`PlotError::Value`] for saved values
/// that are not finite, [`PlotError::OwnTimes`] for rows of tensors with their own times and without dense output.
pub fn time_series(solution: &impl AsNumbers, names: &[&str]) -> Result<Figure, PlotError> {
    let n = solution.num_shown();
    let drawn: Vec<usize> =
        if n <= MOST { (0..n).collect() } else { (0..MOST).map(|i| i * (n - 1) / (MOST - 1)).collect() };
    let trace =
        Trace::of(solution, Scales::Common, &|y| drawn.iter().filter_map(|&j| y.get(j).copied()).collect())?;
    let name = |&j: &usize| names.get(j).map_or_else(|| format!("y{j}"), |name| (*name).to_owned());
    let drawn_names: Vec<String> = drawn.iter().map(name).collect();
    let y = if n <= names.len().min(MOST_ON_AXIS) { drawn_names.join(", ") } else { "y".to_owned() };
    against_time(&trace, &drawn_names, &y)
}

/// A phase portrait: a projection of the components, from the start (ring) to the end (dot), colored by time.
///
/// Project three components to the plane to draw a curve in space. Axes of similar extent share one scale.
///
/// # Errors
/// As [`time_series`].
///
/// # Examples
/// ```
/// use flowline::ode::{Ode, SaveAt};
/// let circle = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]).save_at(SaveAt::dense());
/// let figure = flowline::plot::phase_portrait(&circle.solve(0.0, 6.0, [1.0, 0.0])?, ["x", "x'"], |y| [y[0], y[1]])?;
/// assert!(figure.width > figure.height);
/// # Ok::<(), flowline::Error>(())
/// ```
pub fn phase_portrait(
    solution: &impl AsNumbers,
    names: [&str; 2],
    project: impl Fn(&[f64]) -> [f64; 2],
) -> Result<Figure, PlotError> {
    in_plane(&Trace::of(solution, Scales::Own, &|y| project(y).to_vec())?, names)
}

fn against_time(trace: &Trace, names: &[String], axis: &str) -> Result<Figure, PlotError> {
    let values = trace.points().chain(&trace.dots).flat_map(|(_, y)| y.iter().copied());
    let range = padded(values, 0.05);
    let named = Named::new(range, 6, axis);
    // A power of ten after several names would seem to belong to the last one.
    let is_unclear = names.len() > 1 && named.name != axis;
    let y = if is_unclear { Named::new(range, 6, "y") } else { named }.upwards();
    let x = Named::new(padded(trace.points().map(|p| p.0), 0.0), 8, "t");
    let right = Right::Tags(tags::room(names.iter().cloned()));
    let mut chart = Chart::new(x, y, &Layout { size: Size::Canvas, title: "", legend: &[], right })?;
    let events = &trace.events[..trace.events.len().min(MOST_EVENTS)];
    let [_, _, low, high] = chart.ends();
    for (_, (t, _)) in events {
        chart.rule([*t, low], [*t, high])?;
    }
    let mut tags = Vec::new();
    for (j, name) in names.iter().enumerate().rev() {
        let color = SERIES[j];
        for piece in &trace.pieces {
            let path: Vec<[f64; 2]> = piece.iter().map(|(t, y)| [*t, y[j]]).collect();
            chart.curve(&path, 3.5, color);
        }
        if trace.dots.len() <= MOST_DOTS {
            trace.dots.iter().for_each(|(t, y)| chart.dot([*t, y[j]], 11.0, color));
        }
        let end = trace.points().last().map_or([0.0; 2], |(t, y)| chart.at([*t, y[j]]));
        tags.push(Tag { name: name.clone(), ends: vec![end], color });
    }
    chart.tags(&tags);
    for (t, y) in events.iter().map(|e| &e.1) {
        y.iter().enumerate().for_each(|(j, &y)| chart.ring([*t, y], 15.0, SERIES[j]));
    }
    Ok(chart.finish(&trace.about))
}

fn in_plane(trace: &Trace, names: [&str; 2]) -> Result<Figure, PlotError> {
    let range = |a: usize| padded(trace.points().chain(&trace.dots).map(|p| p.1[a]), 0.05);
    let (x, y) = (range(0), range(1));
    let size = plane_size((x[1] - x[0]) / (y[1] - y[0]));
    let (x, y) = (Named::new(x, 6, names[0]), Named::new(y, 6, names[1]).upwards());
    let mut chart = Chart::new(x, y, &Layout { size, title: "", legend: &[], right: Right::Bar })?;
    let (from, to) = (trace.pieces[0][0].0, trace.points().last().map_or(0.0, |p| p.0));
    let place = |t: f64| if to == from { 0.0 } else { (t - from) / (to - from) };
    for piece in &trace.pieces {
        // Neighboring runs share a point, so that no gap shows between two shades.
        for run in runs(piece, &place) {
            let path: Vec<[f64; 2]> = run.iter().map(|(_, y)| [y[0], y[1]]).collect();
            chart.curve(&path, 2.6, time_color(place(run[run.len() / 2].0)));
        }
    }
    if trace.dots.len() <= MOST_DOTS {
        trace.dots.iter().for_each(|(t, y)| chart.dot([y[0], y[1]], 9.0, time_color(place(*t))));
    }
    for (_, (_, y)) in trace.events.iter().take(MOST_EVENTS).filter(|e| !e.1.1.is_empty()) {
        chart.ring([y[0], y[1]], 13.0, SERIES[2]);
    }
    let ends = [trace.pieces[0].first(), trace.points().last()].map(|p| p.map(|p| [p.1[0], p.1[1]]));
    if let [Some(start), Some(end)] = ends {
        chart.ring(start, 21.0, INK);
        chart.dot(end, 13.0, INK);
        let [from, to] = [start, end].map(|point| chart.at(point));
        let mut note =
            |name: &str, [x, y]: [f64; 2]| chart.note(name, [x + 20.0, y - 24.0], Anchor::Left, INK);
        // The ends of a closed orbit have one name, because two would overlap.
        if (from[0] - to[0]).abs() < 120.0 && (from[1] - to[1]).abs() < 36.0 {
            note("start, end", from);
        } else {
            note("start", from);
            note("end", to);
        }
    }
    // The lower end of the bar is the start of the solve, also for a solve backward in time.
    let bar = if to == from { [from, from + 1.0] } else { [from, to] };
    chart.bar(Named::new(bar, 6, "t"), time_color, Colors::Paper)?;
    Ok(chart.finish(&trace.about))
}

/// A piece split into runs of nearly constant time, each starting where the previous one ends.
fn runs<'a>(
    piece: &'a [(f64, Vec<f64>)],
    place: &impl Fn(f64) -> f64,
) -> impl Iterator<Item = &'a [(f64, Vec<f64>)]> {
    let shade = |i: usize| (place(piece[i].0) * SHADES as f64) as usize;
    let mut cuts = vec![0];
    cuts.extend((1..piece.len().saturating_sub(1)).filter(|&i| shade(i) != shade(i - 1)));
    cuts.push(piece.len() - 1);
    (0..cuts.len() - 1).map(move |i| &piece[cuts[i]..=cuts[i + 1]])
}

/// The figure size for this aspect ratio; for extreme ratios the whole canvas.
fn plane_size(aspect: f64) -> Size {
    if (0.4..=2.5).contains(&aspect) { Size::Aspect(aspect) } else { Size::Canvas }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ode::tests::draw::Draw;
    use crate::ode::{ConstantStepSize, Event, Method, Ode, SaveAt};
    use crate::plot::marks::Mark;

    fn circle(_t: f64, y: &[f64; 2]) -> [f64; 2] {
        [y[1], -y[0]]
    }

    fn columns(pick: &[usize]) -> impl Fn(&[f64]) -> Vec<f64> {
        move |y| pick.iter().map(|&j| y[j]).collect()
    }

    /// Oscillations of two frequencies, of which one may decay fast: few long steps, or many short ones.
    #[test]
    fn chords_of_a_curve_are_within_a_pixel_of_it() {
        let (mut draw, mut most, mut fewest) = (Draw(36), 0, usize::MAX);
        for _ in 0..60 {
            let (rate, decay, t1) =
                (draw.uniform(0.2, 8.0), draw.one(&[0.0, 1.0, 40.0]), draw.uniform(0.5, 20.0));
            let field = move |t: f64, y: &[f64; 2]| [(rate * t).cos(), -decay * (y[1] - t.sin())];
            let (rtol, method) =
                (draw.one(&[1e-2, 1e-6]), draw.one(&[Method::Tsit5, Method::Vern9, Method::Bosh3]));
            let save = SaveAt::ts(&[0.3 * t1]).and_steps().and_dense();
            let solution =
                Ode::new(field).method(method).rtol(rtol).save_at(save).solve(0.0, t1, [0.0, 1.0]).unwrap();
            for scales in [Scales::Common, Scales::Own] {
                let trace = Trace::of(&solution, scales, &columns(&[0, 1])).unwrap();
                assert_eq!((trace.pieces.len(), trace.dots.len()), (1, solution.ts.len()));
                let all: Vec<f64> = trace.points().flat_map(|p| p.1.clone()).collect();
                let extent = |j: usize| {
                    let own = all.iter().skip(j).step_by(if scales == Scales::Own { 2 } else { 1 });
                    let own = own.copied().fold([f64::MAX, f64::MIN], |[a, b], y| [a.min(y), b.max(y)]);
                    (own[1] - own[0]).max(f64::MIN_POSITIVE)
                };
                let extents = if scales == Scales::Own { [extent(0), extent(1)] } else { [extent(0); 2] };
                let curve = solution.dense().unwrap();
                for pair in trace.pieces[0].windows(2) {
                    let middle = curve.eval(0.5 * (pair[0].0 + pair[1].0)).unwrap();
                    for (j, extent) in extents.iter().enumerate() {
                        let off = (middle[j] - 0.5 * (pair[0].1[j] + pair[1].1[j])).abs() / extent;
                        assert!(
                            1500.0 * off < 1.0,
                            "{off:e} at {}: {rate} {decay} {t1} {method:?}",
                            pair[0].0
                        );
                    }
                }
                (most, fewest) = (most.max(trace.points().count()), fewest.min(trace.points().count()));
            }
        }
        assert!(fewest < 200 && most > 1000, "{fewest} to {most} samples");
    }

    #[test]
    fn a_curve_of_many_steps_has_at_most_twenty_thousand_samples() {
        let wave = |t: f64, _y: &[f64; 1]| [6.0 * (6.0 * t).cos()];
        let ode = Ode::new(wave).controller(ConstantStepSize { dt0: 1.0 }).save_at(SaveAt::dense());
        let solution = ode.solve(0.0, 2400.0, [0.0]).unwrap();
        let trace = Trace::of(&solution, Scales::Own, &columns(&[0])).unwrap();
        // Equal bends are divided together, so the last few samples may be missing.
        assert!((19_900..=20_000).contains(&trace.points().count()), "{}", trace.points().count());
        assert!(trace.pieces[0].windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn values_of_a_save_fn_replace_the_curve() {
        let ode = Ode::new(circle).save_at(SaveAt::ts(&[1.0, 2.0]).and_dense()).save_fn(|_t, y| [2.0 * y[0]]);
        let solution = ode.solve(0.0, 3.0, [1.0, 0.0]).unwrap();
        assert_eq!(solution.num_shown(), 1);
        let trace = Trace::of(&solution, Scales::Common, &columns(&[0])).unwrap();
        assert_eq!(trace.pieces[0], [(1.0, vec![solution.ys[0][0]]), (2.0, vec![solution.ys[1][0]])]);
    }

    #[test]
    fn a_curve_is_cut_at_state_resets() {
        let ball = Ode::new(|_t, y: &[f64; 2]| [y[1], -9.81])
            .on_event(Event::falling(), |_t, y| y[0], |_t, y| y[1] *= -0.9)
            .event(Event::falling(), |_t, y| y[1])
            .save_at(SaveAt::dense());
        let solution = ball.solve(0.0, 3.0, [10.0, 0.0]).unwrap();
        let trace = Trace::of(&solution, Scales::Common, &columns(&[0, 1])).unwrap();
        let bounces = solution.events.iter().filter(|occurrence| occurrence.index == 0).count();
        assert!(bounces == 1 && solution.events.len() > bounces, "{:?}", solution.events);
        assert_eq!(trace.pieces.len(), 1 + bounces);
        let (before, after) = (trace.pieces[0].last().unwrap().1[1], trace.pieces[1][0].1[1]);
        assert!((after + 0.9 * before).abs() < 1e-6, "{before} {after}");
    }

    #[cfg(feature = "autodiff")]
    #[test]
    fn a_solution_of_tensors_is_drawn_as_the_plain_one() {
        use crate::adjoint::Batching;
        use crate::tensor::Tensor;
        let plain = Ode::new(|_t, y: &[f64; 2]| [y[1], -9.81])
            .on_event(Event::falling(), |_t, y| y[0], |_t, y| y[1] *= -0.9)
            .save_at(SaveAt::ts(&[0.5, 1.0]).and_dense());
        let traced = Ode::new(|_t, y: &Tensor| Tensor::stack(&[y.index(1), Tensor::from(-9.81)]))
            .on_event(
                Event::falling(),
                |_t, y| y.index(0),
                |_t, y| {
                    *y = Tensor::stack(&[y.index(0), -0.9 * y.index(1)]);
                },
            )
            .max_steps(200)
            .save_at(SaveAt::ts(&[0.5, 1.0]).and_dense());
        let plain = plain.solve(0.0, 5.0, [10.0, 0.0]).unwrap();
        let traced = traced.solve(0.0, 5.0, Tensor::from([10.0, 0.0])).unwrap();
        let [a, b] = [
            Trace::of(&plain, Scales::Own, &columns(&[0, 1])),
            Trace::of(&traced, Scales::Own, &columns(&[0, 1])),
        ]
        .map(Result::unwrap);
        assert!(a.pieces.len() > 1 && a.events.len() == b.events.len() && a.dots.len() == b.dots.len());
        let lengths = |trace: &Trace| trace.pieces.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(&a), lengths(&b));
        let all = |trace: &Trace| {
            let events = trace.events.iter().map(|(_, at)| at);
            trace
                .points()
                .chain(&trace.dots)
                .chain(events)
                .flat_map(|(t, y)| [*t, y[0], y[1]])
                .collect::<Vec<_>>()
        };
        let off = all(&a).iter().zip(all(&b)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-6, "{off}");
        assert!(b.about.starts_with(&format!("{} steps", traced.stats.num_steps.item())), "{}", b.about);

        let folder = crate::io::scratch();
        traced.plot(folder.path().join("a.png")).unwrap();
        traced.plot_phase_portrait(folder.path().join("b.svg"), 0, 1).unwrap();
        assert!(matches!(
            traced.plot_phase_portrait(folder.path().join("c.svg"), 0, 2),
            Err(PlotError::Component { index: 2, components: 2 })
        ));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        // Rows with their own steps: a curve by dense output, but no common saved times.
        let rows = |save: SaveAt| {
            let ode = Ode::new(|_t, y: &Tensor| -y).batching(Batching::PerRow).max_steps(100).save_at(save);
            ode.solve(0.0, 1.0, Tensor::from([[1.0], [9.0]])).unwrap()
        };
        assert!(time_series(&rows(SaveAt::dense()), &["a", "b"]).is_ok());
        assert!(matches!(time_series(&rows(SaveAt::steps()), &[]), Err(PlotError::OwnTimes)));
    }

    #[test]
    fn figures_have_ink_on_the_solution() {
        let solution = Ode::new(circle).save_at(SaveAt::dense()).solve(0.0, 6.0, [1.0, 0.0]).unwrap();
        let figure = time_series(&solution, &["x", "v"]).unwrap();
        let first = (0..figure.width * figure.height)
            .filter(|i| figure.pixel(i % figure.width, i / figure.width) == SERIES[0])
            .count();
        assert!(first > 3 * 1500, "{first} pixels of the first curve");
        let plane = phase_portrait(&solution, ["x", "v"], |y| [y[0], y[1]]).unwrap();
        assert!(plane.height > 800, "a circle is round: {} x {}", plane.width, plane.height);
    }

    #[test]
    fn the_solver_s_log_is_in_the_file_and_not_in_the_figure() {
        let solution = Ode::new(circle).save_at(SaveAt::dense()).solve(0.0, 6.0, [1.0, 0.0]).unwrap();
        let figure = time_series(&solution, &["x", "v"]).unwrap();
        assert!(figure.about.starts_with("tsit5, rtol="), "{}", figure.about);
        let texts = figure.marks.iter().filter_map(|mark| match mark {
            Mark::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        assert!(
            texts.clone().any(|text| text == "v") && texts.into_iter().all(|text| !text.contains("rtol"))
        );
        let bytes = figure.to_png_bytes().unwrap();
        assert!(bytes.windows(11).any(|part| part == b"tsit5, rtol"));
        assert!(figure.to_svg().unwrap().contains("<desc>tsit5, rtol="));
    }

    #[test]
    fn solutions_without_a_curve_are_refused() {
        let end = Ode::new(circle).solve(0.0, 1.0, [1.0, 0.0]).unwrap();
        let folder = crate::io::scratch();
        let message = end.plot(folder.path().join("a.png")).unwrap_err().to_string();
        assert!(
            message.starts_with("a solution with 1 saved values or step times has no curve"),
            "{message}"
        );
        let steps = Ode::new(circle).save_at(SaveAt::steps()).solve(0.0, 1.0, [1.0, 0.0]).unwrap();
        let error = steps.plot_phase_portrait(folder.path().join("a.png"), 0, 2).unwrap_err();
        assert!(matches!(error, PlotError::Component { index: 2, components: 2 }), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(steps.plot(folder.path().join("a.png")).is_ok());
    }

    #[test]
    fn the_ends_of_a_closed_orbit_have_one_name() {
        let names = |t1: f64| -> Vec<String> {
            let solution = Ode::new(circle).save_at(SaveAt::dense()).solve(0.0, t1, [1.0, 0.0]).unwrap();
            let figure = phase_portrait(&solution, ["a", "b"], |y| [y[0], y[1]]).unwrap();
            let of = |mark: &Mark| match mark {
                Mark::Text { text, .. } if ["start", "end", "start, end"].contains(&&**text) => {
                    Some(text.clone())
                }
                _ => None,
            };
            figure.marks.iter().filter_map(of).collect()
        };
        assert_eq!(names(std::f64::consts::TAU), ["start, end"]);
        assert_eq!(names(3.0), ["start", "end"]);
    }

    #[test]
    fn many_components_one_point_and_backward_solves_are_drawn() {
        let decay = Ode::in_place(|_t, y: &[f64], dy: &mut [f64]| {
            (0..y.len()).for_each(|j| dy[j] = -y[j] * j as f64);
        });
        let solution = decay.save_at(SaveAt::steps()).solve(1.0, 0.0, vec![1.0; 50]).unwrap();
        assert!(time_series(&solution, &[]).is_ok());
        assert!(phase_portrait(&solution, ["a", "b"], |y| [y[1], y[49]]).is_ok());
        let still = Ode::new(circle).save_at(SaveAt::dense()).solve(1.0, 1.0, [1.0, 0.0]).unwrap();
        assert!(
            time_series(&still, &[]).is_ok() && phase_portrait(&still, ["a", "b"], |y| [y[0], y[1]]).is_ok()
        );
    }
}
