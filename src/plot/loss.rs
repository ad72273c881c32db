//! The loss curve: the training loss of each phase, and the NLL of held-out points, against updates.
//!
//! Losses of different units never share an axis. Phases in nats share the axes of the held-out NLL and of the entropy, its
//! lower bound; phases in other units (a flow-matching loss) have their own panel above, over the same updates.
use super::{
    Figure, PlotError,
    axis::Axis,
    chart::CANVAS,
    clip,
    color::{AXIS, INK, SERIES},
    series::dashes,
    sheet::{Anchor, LABEL, Rect, Sheet, TICK},
    text,
};

/// One phase of training.
#[derive(Debug, Clone, Copy)]
pub struct LossPhase<'a> {
    /// The objective, as named in the legend.
    pub name: &'a str,
    /// Unit of the loss; `nats` shares the axis of the held-out NLL.
    pub unit: &'a str,
    /// `[update, loss]`, with updates increasing over the whole run.
    pub loss: &'a [[f64; 2]],
}

/// The contents of a loss curve.
#[derive(Debug, Clone, Copy)]
pub struct LossCurve<'a> {
    /// The phases, in the order of training.
    pub phases: &'a [LossPhase<'a>],
    /// `[update, NLL on held-out points in nats]`, with increasing updates; may be empty.
    pub nll: &'a [[f64; 2]],
    /// Standard error of the last NLL, or of the KL divergence if the entropy is known.
    pub nll_stderr: Option<f64>,
    /// Entropy of the density in nats, the lower bound of the NLL.
    pub entropy: Option<f64>,
}

const LEFT: u32 = 180;
const RIGHT: u32 = 60;
const TOP: u32 = 110;
const GAP: u32 = 90;
const BELOW: u32 = 130;
/// Moving average over this share of a phase's points.
const SMOOTHED: usize = 30;

/// Draws training losses (thin: every value; thick: a moving average), held-out NLL (points) and entropy (dashed).
///
/// # Errors
/// [`PlotError::Nothing`] without a value, [`PlotError::Value`] for a value that is not finite.
pub fn loss_curve(curve: &LossCurve) -> Result<Figure, PlotError> {
    check(curve)?;
    let in_nats = |phase: &&LossPhase| phase.unit == "nats";
    let (lower, upper): (Vec<_>, Vec<_>) = curve.phases.iter().enumerate().partition(|(_, p)| in_nats(p));
    let has_lower = !lower.is_empty() || !curve.nll.is_empty();
    let panels = u32::from(!upper.is_empty()) + u32::from(has_lower);
    let mut sheet = Sheet::new(CANVAS[0], CANVAS[1]);
    let updates = span(curve.phases.iter().flat_map(|p| p.loss).chain(curve.nll).map(|v| v[0]).chain([0.0]));
    let height = (CANVAS[1] - TOP - BELOW - (panels - 1) * GAP) / panels;
    let rect =
        |i: u32| Rect { x: LEFT, y: TOP + i * (height + GAP), width: CANVAS[0] - LEFT - RIGHT, height };
    let starts: Vec<f64> = curve.phases.iter().skip(1).filter_map(|p| p.loss.first()).map(|v| v[0]).collect();
    if !upper.is_empty() {
        let name = format!("{} loss", upper[0].1.name.replace(' ', "-"));
        let mut panel = Panel::new(&mut sheet, rect(0), updates, &upper, &[], None);
        panel.frame(&name, &starts, !has_lower)?;
        panel.phases(&upper, false);
    }
    if has_lower {
        let mut panel = Panel::new(&mut sheet, rect(panels - 1), updates, &lower, curve.nll, curve.entropy);
        panel.frame("NLL (nats)", &starts, true)?;
        panel.phases(&lower, true);
        panel.held_out(curve);
    }
    sheet.title(&title(curve), Rect { y: 96, ..rect(0) });
    Ok(sheet.figure)
}

/// The final result as text.
fn title(&LossCurve { nll, nll_stderr, entropy, phases }: &LossCurve) -> String {
    let error = nll_stderr.map_or_else(String::new, |stderr| format!(" ± {stderr:.3}"));
    match (nll.last(), entropy) {
        (Some([_, last]), Some(entropy)) => {
            format!("Held-out NLL {last:.3}{error} nats, {:.3} above the entropy", last - entropy)
        }
        (Some([_, last]), None) => format!("Held-out NLL {last:.3}{error} nats"),
        (None, _) => phases.last().map_or_else(String::new, |phase| format!("Loss of {}", phase.name)),
    }
}

/// One pair of axes on the sheet.
struct Panel<'a> {
    sheet: &'a mut Sheet,
    rect: Rect,
    x: Axis,
    y: Axis,
    /// Right end of the space left for the legend, above the panel.
    legend: i32,
}

impl<'a> Panel<'a> {
    fn new(
        sheet: &'a mut Sheet,
        rect: Rect,
        updates: [f64; 2],
        phases: &[(usize, &LossPhase)],
        nll: &[[f64; 2]],
        entropy: Option<f64>,
    ) -> Self {
        let training = bulk(phases.iter().flat_map(|(_, p)| p.loss).map(|v| v[1]), 0.98);
        let held_out = bulk(nll.iter().map(|v| v[1]), 0.8);
        let [low, high] = span(training.into_iter().chain(held_out).flatten().chain(entropy));
        let pad = 0.06 * (high - low);
        let (x, y) = (Axis::round(updates, 6, 1.0), Axis::round([high + pad, low - pad], 5, 1.0));
        Self { sheet, rect, x, y, legend: rect.right() as i32 }
    }

    /// Screen position of a point.
    fn at(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let place = |axis: &Axis, v: f64, from: u32, length: u32| {
            f64::from(from) + axis.at(v) * f64::from(length - 1) + 0.5
        };
        [place(&self.x, x, self.rect.x, self.rect.width), place(&self.y, y, self.rect.y, self.rect.height)]
    }

    /// A curve through points, clipped to the panel.
    fn curve(&mut self, points: &[[f64; 2]], width: f64, color: [u8; 3], opacity: f64) {
        let screen: Vec<_> = points.iter().map(|p| self.at(*p)).collect();
        for piece in clip::pieces(&screen, self.rect.ends()) {
            self.sheet.curve(&piece, width, color, opacity);
        }
    }

    /// Axes, a light grid, and a line where a phase begins.
    fn frame(&mut self, name: &str, starts: &[f64], updates: bool) -> Result<(), PlotError> {
        self.sheet.grid(self.rect, &self.x, &self.y)?;
        for &start in starts {
            let ends = [[start, self.y.range[0]], [start, self.y.range[1]]].map(|p| self.at(p));
            self.sheet.line(&ends, 2, AXIS)?;
        }
        self.sheet.outline(self.rect)?;
        self.sheet.axis_left(self.rect, &self.y, name)?;
        if updates {
            return self.sheet.axis_below(self.rect, &self.x, "updates", RIGHT);
        }
        self.sheet.axis_below(self.rect, &self.x.bare(), "", RIGHT)
    }

    /// The losses of phases; the legend names them if `named`.
    fn phases(&mut self, phases: &[(usize, &LossPhase)], named: bool) {
        for (i, phase) in phases.iter().rev() {
            let color = SERIES[i % 2];
            self.curve(&thinned(phase.loss), 1.0, color, 0.3);
            self.curve(&thinned(&averaged(phase.loss)), 3.5, color, 1.0);
            if named {
                self.legend(&format!("{}, training", phase.name), color);
            }
        }
    }

    /// The held-out NLL with a dot per validation, and the entropy as a dashed line.
    fn held_out(&mut self, &LossCurve { nll, entropy, .. }: &LossCurve) {
        if let Some(entropy) = entropy {
            let ends = self.x.range.map(|x| self.at([x, entropy]));
            for dash in dashes(&ends) {
                self.sheet.curve(&dash, 2.5, INK, 1.0);
            }
            let at = [ends[0][0] as i32 + 16, ends[0][1] as i32 - 22];
            self.sheet.text(&format!("entropy {entropy:.3}"), at, TICK, Anchor::Left, INK);
        }
        if nll.is_empty() {
            return;
        }
        let color = SERIES[2];
        self.curve(nll, 3.5, color, 1.0);
        for p in nll {
            self.curve(&[*p], 13.0, color, 1.0);
        }
        self.legend("held-out NLL", color);
    }

    /// An entry of the legend in the row above the panel, left of the previous entries.
    fn legend(&mut self, name: &str, color: [u8; 3]) {
        const DASH: i32 = 46;
        let y = self.rect.y as i32 - 34;
        let from = self.legend - text::width(name, LABEL - 2);
        self.sheet.text(name, [from, y], LABEL - 2, Anchor::Left, INK);
        let left = f64::from(from - 14 - DASH);
        let middle = f64::from(y) + 0.5;
        self.sheet.curve(&[[left, middle], [left + f64::from(DASH), middle]], 3.5, color, 1.0);
        self.legend = from - 14 - DASH - 36;
    }
}

fn check(curve: &LossCurve) -> Result<(), PlotError> {
    let values = || curve.phases.iter().flat_map(|p| p.loss).chain(curve.nll).flatten().chain(&curve.entropy);
    if let Some((index, value)) = values().enumerate().find(|(_, v)| !v.is_finite()) {
        return Err(PlotError::Value { what: "value of the loss curve", index, value: *value });
    }
    if curve.phases.iter().all(|p| p.loss.is_empty()) && curve.nll.is_empty() {
        return Err(PlotError::Nothing { what: "losses" });
    }
    Ok(())
}

/// Least and largest value, at least slightly apart.
fn span(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let [low, high] = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], v| [l.min(v), h.max(v)]);
    if high > low { [low, high] } else { [low - 0.5, low + 0.5] }
}

/// Least value, and the quantile that ends the axis: the first updates must not set the scale.
fn bulk(values: impl Iterator<Item = f64>, share: f64) -> Option<[f64; 2]> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let high = ((values.len() as f64 * share).ceil() as usize).checked_sub(1)?;
    Some([values[0], values[high]])
}

/// Moving average over a window centered at each point, cut at the ends.
fn averaged(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let half = points.len() / SMOOTHED / 2;
    let mut sums = vec![0.0];
    for p in points {
        sums.push(sums[sums.len() - 1] + p[1]);
    }
    let mean = |i: usize| {
        let (from, to) = (i.saturating_sub(half), (i + half + 1).min(points.len()));
        (sums[to] - sums[from]) / (to - from) as f64
    };
    points.iter().enumerate().map(|(i, p)| [p[0], mean(i)]).collect()
}

/// At most 1,500 evenly spaced points, including the last: the figure has no more columns.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let step = points.len().div_ceil(1500).max(1);
    let last = points.len().saturating_sub(1);
    points.iter().enumerate().filter(|(i, _)| i % step == 0 || *i == last).map(|(_, p)| *p).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::marks::Mark;

    fn falling(n: usize, from: f64, start: f64) -> Vec<[f64; 2]> {
        (0..n).map(|i| [start + i as f64, from + 2.0 * (-(i as f64) / 300.0).exp()]).collect()
    }

    #[test]
    fn losses_of_another_unit_have_their_own_panel() {
        let (matching, likelihood) = (falling(2000, 2.8, 0.0), falling(100, 1.4, 2000.0));
        let nll = [[500.0, 1.8], [2100.0, 1.42]];
        let phases = [
            LossPhase { name: "flow matching", unit: "mean square", loss: &matching },
            LossPhase { name: "maximum likelihood", unit: "nats", loss: &likelihood },
        ];
        let both = loss_curve(&LossCurve {
            phases: &phases,
            nll: &nll,
            nll_stderr: Some(0.01),
            entropy: Some(1.38),
        })
        .unwrap();
        let names = |figure: &Figure| -> Vec<String> {
            let text =
                |mark: &Mark| if let Mark::Text { text, .. } = mark { Some(text.clone()) } else { None };
            figure.marks.iter().filter_map(text).collect()
        };
        let (loss, held_out) =
            ("flow-matching loss", "Held-out NLL 1.420 ± 0.010 nats, 0.040 above the entropy");
        assert!(
            [loss, held_out, "NLL (nats)"].iter().all(|name| names(&both).iter().any(|found| found == name))
        );
        let one = loss_curve(&LossCurve { phases: &phases[1..], nll: &nll, nll_stderr: None, entropy: None })
            .unwrap();
        assert!(!names(&one).contains(&loss.to_owned()));
        assert_eq!([both.width, both.height, one.height], [CANVAS[0], CANVAS[1], CANVAS[1]]);
    }

    #[test]
    fn a_single_value_and_a_constant_are_drawn() {
        for loss in [&[[0.0, 1.0]][..], &[[0.0, 1.0], [5.0, 1.0]]] {
            let phases = [LossPhase { name: "a", unit: "nats", loss }];
            assert!(
                loss_curve(&LossCurve { phases: &phases, nll: &[], nll_stderr: None, entropy: Some(1.0) })
                    .is_ok()
            );
        }
    }

    #[test]
    fn averages_keep_a_constant_and_the_mean() {
        assert!(averaged(&[[0.0, 3.0]; 500]).iter().all(|p| (p[1] - 3.0).abs() < 1e-12));
        let line: Vec<_> = (0..601).map(|i| [f64::from(i), f64::from(i)]).collect();
        assert!((averaged(&line)[300][1] - 300.0).abs() < 1e-9);
        assert_eq!(thinned(&line).len(), 601);
    }

    #[test]
    fn nothing_and_nan_are_refused() {
        let none = LossCurve { phases: &[], nll: &[], nll_stderr: None, entropy: None };
        assert!(matches!(loss_curve(&none), Err(PlotError::Nothing { .. })));
        let nan = LossCurve { nll: &[[1.0, f64::NAN]], ..none };
        assert!(loss_curve(&nan).unwrap_err().to_string().contains("is NaN"));
    }
}
