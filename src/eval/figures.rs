//! Figures of densities over points or the plane, and the samples that they show.
//!
//! All densities and samples of a run use the color scale of the target density. For points from a file,
//! whose density is not known, they use that of the learned density.

use super::domain::Inner;
use super::frame::Cells;
use super::measure::{DRAW_TOLERANCE, DRAWN, LogDensity, Sampler, drawable};
use super::{Deadline, Frames, ImageFrame, Work};
use crate::cnf::config::Flow;
use crate::data::{Points, Standardizer, grouped};
use crate::error::{Error, Result};
use crate::io::run::RunFolder;
use crate::plot::{
    self, ColorScale, Heatmap,
    extra::{FieldPanel, Plane},
};
use crate::tensor::{Key, Tensor};

/// Maximum number of points in the figure of samples (and of the data in the corner plot), and in the figure of
/// the flow.
pub(crate) const SAMPLES: usize = 40_000;
pub(crate) const FLOW_POINTS: usize = 12_000;
const FLOW_PANELS: usize = 6;
/// Frames of the animation from one panel to the next.
const FRAMES_PER_PANEL: usize = 9;
/// The times in the figure of the velocity: t = 0.2, 0.4, 0.6 and 0.8.
const FIELD_TIMES: [usize; 4] =
    [FRAMES_PER_PANEL, 2 * FRAMES_PER_PANEL, 3 * FRAMES_PER_PANEL, 4 * FRAMES_PER_PANEL];
/// Nodes along a side of the grid on which the velocity is evaluated for streamlines.
const FIELD_NODES: usize = 96;
pub(crate) const FLOW_TIMES: usize = (FLOW_PANELS - 1) * FRAMES_PER_PANEL + 1;
/// Number of samples in the corner plot.
pub(crate) const CORNER_POINTS: usize = 2_000;
/// Minimum number of points in the figure of the flow.
pub(crate) const FLOW_LEAST: usize = 500;
/// Number of grid points for the density of points with one coordinate.
const LINE: usize = 600;

/// Draws the figures of a run.
pub(crate) struct Artist {
    frame: ImageFrame,
    frames: Frames,
    /// The label of the target density.
    title: &'static str,
    /// The labels of the axes.
    names: [String; 2],
}

impl Artist {
    /// `frames` are the frames of the data, `frame` is the window of the figures, and `title` is the label of
    /// the target density.
    pub(crate) fn new(frames: &Frames, frame: &ImageFrame, title: &'static str) -> Artist {
        Artist { frame: frame.clone(), frames: frames.clone(), title, names: frames.axis_names() }
    }

    /// The window of the figures.
    pub(crate) fn frame(&self) -> &ImageFrame {
        &self.frame
    }

    /// The plane of the figures, its axes labeled by the data's columns.
    fn plane(&self, scale: ColorScale) -> Plane<'_> {
        Plane { frame: self.frame.window(), names: [0, 1].map(|a| self.names[a].as_str()), scale }
    }

    /// The end of a title for a density that was evaluated on fewer cells than usual, for lack of time: thin lines look
    /// like beads then.
    fn cells(&self, (_, rows, cols): &Inner) -> String {
        cells_title((*rows, *cols), self.frame.finest())
    }

    /// The color scale for a learned density.
    fn scale(&self, learned: &Inner) -> ColorScale {
        self.frames.color_scale(&self.map(&learned.0, learned.1, learned.2))
    }

    fn map<'a>(&self, values: &'a [f64], rows: usize, cols: usize) -> Heatmap<'a> {
        Heatmap { values, rows, cols, frame: self.frame.window() }
    }

    /// `density.png` of the weights after `update` of `updates` updates.
    pub(crate) fn density(
        &self,
        folder: &RunFolder,
        learned: &Inner,
        (update, updates): (u64, u64),
    ) -> Result<()> {
        let map = self.map(&learned.0, learned.1, learned.2);
        let title = density_title(update, updates) + &self.cells(learned);
        let plane = self.plane(self.scale(learned));
        Ok(plane.density(&title, &map)?.save(folder.target("density.png")?)?)
    }

    /// The target density, whose values cover the window, beside the learned one.
    pub(crate) fn comparison(&self, folder: &RunFolder, learned: &Inner, truth: &Inner) -> Result<()> {
        let (truth, plane) = (self.map(&truth.0, truth.1, truth.2), self.plane(self.scale(learned)));
        let title = format!("Learned density{}", self.cells(learned));
        let learned = self.map(&learned.0, learned.1, learned.2);
        let figure = plane.comparison(&[(self.title, &truth), (&title, &learned)])?;
        Ok(figure.save(folder.target("comparison.png")?)?)
    }

    /// A scatter plot and a histogram of points in pixel coordinates, on the color scale of the learned density.
    pub(crate) fn samples(&self, folder: &RunFolder, learned: &Inner, points: &[[f64; 2]]) -> Result<()> {
        Ok(self.plane(self.scale(learned)).samples(points)?.save(folder.target("samples.png")?)?)
    }

    /// Trajectories from the base to the data, in pixel coordinates: `flow.png` shows some times side by side.
    pub(crate) fn flow(&self, folder: &RunFolder, way: &Way) -> Result<()> {
        let panels: Vec<_> = frames(way).into_iter().step_by(FRAMES_PER_PANEL).collect();
        Ok(self.plane(self.frame.scale()).flow_panels(&panels)?.save(folder.target("flow.png")?)?)
    }

    /// `field.png`: streamlines of the velocity at some times, over the points of the trajectories.
    pub(crate) fn field(&self, folder: &RunFolder, flow: &Flow, way: &Way) -> Result<()> {
        let times = FIELD_TIMES.map(|time| &way[time]);
        let fields = times.iter().map(|(t, _)| Velocities::of(flow, &self.frame, *t));
        let fields = fields.collect::<Result<Vec<Velocities>>>()?;
        let velocities: Vec<_> = fields.iter().map(|field| move |p: [f64; 2]| field.at(p)).collect();
        let panels = times.iter().zip(&velocities);
        let panels: Vec<FieldPanel> =
            panels.map(|((t, points), velocity)| FieldPanel { t: *t, points, velocity }).collect();
        Ok(self.plane(self.frame.scale()).field(&panels)?.save(folder.target("field.png")?)?)
    }

    /// `flow.gif`: an animation of the trajectories at all times.
    pub(crate) fn animation(&self, folder: &RunFolder, way: &Way) -> Result<()> {
        let plane = self.plane(self.frame.scale());
        Ok(plane.flow_animation(&frames(way))?.save(folder.target("flow.gif")?)?)
    }
}

/// The velocity of a flow on a grid over the window of figures, in pixels per time; for points, in the units of the data.
struct Velocities {
    x: [f64; 2],
    y: [f64; 2],
    /// Row by row.
    nodes: Vec<[f64; 2]>,
}

impl Velocities {
    fn of(flow: &Flow, frame: &ImageFrame, t: f64) -> Result<Velocities> {
        let plot::Extent { x, y } = frame.window();
        let place = |[from, to]: [f64; 2], i: usize| from + (to - from) * i as f64 / (FIELD_NODES - 1) as f64;
        let node = |i: usize| frame.to_standard([place(x, i % FIELD_NODES), place(y, i / FIELD_NODES)]);
        let n = FIELD_NODES * FIELD_NODES;
        let points = Tensor::from_vec([n, 2], (0..n).flat_map(node).map(|x| x as f32).collect());
        let found = flow.velocity(&Tensor::from_vec([n, 1], vec![t as f32; n]), &points)?;
        let origin = frame.to_pixels([0.0; 2]);
        let scaled = |v: [f64; 2]| {
            let moved = frame.to_pixels(v);
            [moved[0] - origin[0], moved[1] - origin[1]]
        };
        Ok(Velocities { x, y, nodes: pairs(&found).into_iter().map(scaled).collect() })
    }

    /// The velocity at a point of the window, linear between the nodes.
    fn at(&self, p: [f64; 2]) -> [f64; 2] {
        let last = (FIELD_NODES - 1) as f64;
        let place = |v: f64, [from, to]: [f64; 2]| {
            let place = ((v - from) / (to - from) * last).clamp(0.0, last);
            let below = (place as usize).min(FIELD_NODES - 2);
            (below, place - below as f64)
        };
        let ((column, right), (row, down)) = (place(p[0], self.x), place(p[1], self.y));
        [0, 1].map(|axis| {
            let node = |row: usize, column: usize| self.nodes[row * FIELD_NODES + column][axis];
            let along = |row: usize| node(row, column) * (1.0 - right) + node(row, column + 1) * right;
            along(row) * (1.0 - down) + along(row + 1) * down
        })
    }
}

fn frames(way: &Way) -> Vec<(f64, &[[f64; 2]])> {
    way.iter().map(|(t, points)| (*t, &points[..])).collect()
}

/// The title of a learned density, whose weights may be older than the last update.
fn density_title(update: u64, updates: u64) -> String {
    let [at, last] = [update, updates].map(grouped);
    if update == updates {
        format!("Learned density after {last} updates")
    } else {
        format!("Learned density (update {at} of {last})")
    }
}

fn cells_title((rows, cols): (usize, usize), finest: usize) -> String {
    if rows.max(cols) < finest { format!(", {rows} x {cols} cells") } else { String::new() }
}

/// `corner.png`: the data and samples `[n, d]` in the units of the data, for each pair of columns.
pub(crate) fn corner(folder: &RunFolder, points: &Points, samples: &[f64]) -> Result<()> {
    let shown = points.len().min(SAMPLES) * points.dim();
    let title = "Samples (dots) over the data";
    let figure = plot::corner(title, &points.columns, &points.values()[..shown], samples)?;
    Ok(figure.save(folder.target("corner.png")?)?)
}

/// The grid for the density of points on a line: uniform over the data, plus a tenth of their extent on either side.
pub(crate) fn on_line(points: &Points) -> Vec<f64> {
    let [low, high] = extent(points.values());
    let margin = 0.1 * (high - low);
    (0..LINE).map(|i| low - margin + (high - low + 2.0 * margin) * i as f64 / (LINE - 1) as f64).collect()
}

fn extent(values: &[f64]) -> [f64; 2] {
    values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &x| [low.min(x), high.max(x)])
}

/// `density.png` of points on a line: a histogram of the data and the learned density `(x, p)`.
pub(crate) fn line(folder: &RunFolder, points: &Points, learned: Vec<[f64; 2]>) -> Result<()> {
    let [low, high] = extent(points.values());
    let bins = ((points.len() as f64).sqrt() as usize).clamp(10, 100);
    let width = (high - low) / bins as f64;
    let mut counts = vec![0_usize; bins];
    points.values().iter().for_each(|x| counts[(((x - low) / width) as usize).min(bins - 1)] += 1);
    let tall = |count: usize| count as f64 / (points.len() as f64 * width);
    let step = |(i, &count): (usize, &usize)| {
        [[low + i as f64 * width, tall(count)], [low + (i + 1) as f64 * width, tall(count)]]
    };
    let outline =
        [[[low, 0.0]].to_vec(), counts.iter().enumerate().flat_map(step).collect(), vec![[high, 0.0]]];
    let axes = plot::Axes::new(&points.columns[0], "density").title("Learned density over the data");
    let axes = axes.thin_lines("data, histogram", &[outline.concat()], 1).lines("learned", &[learned], 0);
    Ok(axes.render()?.save(folder.target("density.png")?)?)
}

/// The density at points on a line, in the units of the data.
pub(crate) fn over_line(flow: &Flow, standard: &Standardizer, places: Vec<f64>) -> Result<Vec<[f64; 2]>> {
    let there: Vec<f32> = standard.transform(&places).into_iter().map(|x| x as f32).collect();
    let density = LogDensity::for_points(places.len(), DRAW_TOLERANCE, DRAW_TOLERANCE).by_distance();
    let found = density.eval_rows(flow, &there, 1)?;
    let unstandardized =
        |(x, log_prob): (f64, f32)| [x, (f64::from(log_prob) + standard.log_jacobian()).exp()];
    Ok(places.into_iter().zip(found).map(unstandardized).collect())
}

/// Up to 40,000 samples in parts of the sampler's rows, as many as there is time for, in pixels; for points, in the units of
/// the data.
pub fn samples(
    flow: &Flow,
    image: &ImageFrame,
    key: &Key,
    (sampler, by): (&Sampler, &Deadline),
    progress: impl FnMut(f64),
) -> Result<Vec<[f64; 2]>> {
    let mut points = Vec::with_capacity(SAMPLES);
    let rows = sampler.rows_per_call();
    by.in_chunks((Work::Samples, SAMPLES, rows, 0), progress, |part| {
        let place = (part.start / rows) as u32;
        let found = sampler.part(flow, part.len(), &key.fold_in(place))?;
        points.extend(found.as_chunks::<2>().0.iter().map(|&p| image.to_pixels(p)));
        Ok::<_, Error>(())
    })?;
    Ok(points)
}

/// 500 to 12,000 trajectories, as many as there is time for, in pixels; for points, in the units of the data.
/// `None` if there is no time for the smallest number.
pub fn trajectories(flow: &Flow, image: &ImageFrame, key: &Key, by: &Deadline) -> Result<Option<Way>> {
    let mut n = by.count(Work::Trajectories, FLOW_POINTS).max(FLOW_LEAST);
    while !by.fits(Work::Trajectories, n as f64) {
        if n == FLOW_LEAST {
            return Ok(None);
        }
        n = (n / 2).max(FLOW_LEAST);
    }
    let mut way = by.watch.run(Work::Trajectories, n as f64, || on_their_way(flow, n, FLOW_TIMES, key))?;
    way.iter_mut().flat_map(|(_, points)| points).for_each(|p| *p = image.to_pixels(*p));
    Ok(Some(way))
}

/// The density per square pixel at the centers of cells.
///
/// # Errors
/// A solve that ended early.
pub fn on_cells(
    log_density: &LogDensity,
    flow: &Flow,
    frame: &ImageFrame,
    cells: &Cells,
) -> Result<Vec<f64>> {
    let shift = frame.log_jacobian();
    let log_probs = log_density.eval(flow, &cells.centers)?;
    Ok(log_probs.iter().map(|&x| (f64::from(x) + shift).exp()).collect())
}

/// Trajectories in the plane: points by time, from the base to the data.
pub type Way = Vec<(f64, Vec<[f64; 2]>)>;

/// n trajectories from the base to the data: for each of `times` evenly spaced times, the time as a fraction
/// from 0 to 1, and the points.
///
/// # Errors
/// A solve that ended early.
pub fn on_their_way(flow: &Flow, n: usize, times: usize, key: &Key) -> Result<Way> {
    let path = drawable(flow, DRAWN).sample_trajectories(n, key, times)?;
    Ok((0..times).map(|k| (k as f64 / (times - 1) as f64, pairs(&path.index(k)))).collect())
}

fn pairs(points: &Tensor) -> Vec<[f64; 2]> {
    points.to_vec().as_chunks::<2>().0.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn velocities_are_linear_between_nodes_and_constant_outside() {
        let (x, y) = ([0.0, 2.0], [3.0, 1.0]);
        let place = |[from, to]: [f64; 2], i: usize| from + (to - from) * i as f64 / (FIELD_NODES - 1) as f64;
        let node = |i: usize| [place(x, i % FIELD_NODES), 2.0 * place(y, i / FIELD_NODES)];
        let field = Velocities { x, y, nodes: (0..FIELD_NODES * FIELD_NODES).map(node).collect() };
        for (p, expected) in [([0.3, 1.7], [0.3, 3.4]), ([2.0, 1.0], [2.0, 2.0]), ([9.0, 3.0], [2.0, 6.0])] {
            let found = field.at(p);
            assert!((0..2).all(|axis| (found[axis] - expected[axis]).abs() < 1e-12), "{found:?}");
        }
    }

    #[test]
    fn the_title_names_the_update_of_older_weights() {
        assert_eq!(cells_title((48, 36), 400), ", 48 x 36 cells");
        assert_eq!([cells_title((400, 300), 400), cells_title((300, 400), 400)], ["", ""]);
        assert_eq!(density_title(18_369, 18_369), "Learned density after 18,369 updates");
        assert_eq!(density_title(1_745, 18_369), "Learned density (update 1,745 of 18,369)");
    }
}
