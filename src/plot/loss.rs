//! The loss curve: the training loss of each phase, and the validation NLL, against updates.
//!
//! Losses of different units never share an axis. Phases in nats share the axes of the validation NLL and of the
//! entropy, its lower bound; phases in other units (a flow-matching loss) have their own panel above, over the same
//! updates. A short last phase in nats is enlarged in a panel on the right.
use super::{
    Figure, PlotError,
    axis::{Axis, thousands},
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
    /// Unit of the loss; `nats` shares the axis of the validation NLL.
    pub unit: &'a str,
    /// `[update, loss]`, with updates increasing over the whole run.
    pub loss: &'a [[f64; 2]],
}

/// The contents of a loss curve.
#[derive(Debug, Clone, Copy)]
pub struct LossCurve<'a> {
    /// The phases, in the order of training.
    pub phases: &'a [LossPhase<'a>],
    /// `[update, validation NLL in nats]`, with increasing updates; may be empty.
    pub nll: &'a [[f64; 2]],
    /// `[update, validation NLL in nats]` of the best weights, with which the run ends: marked by a ring, and
    /// in the title if the entropy is unknown. With `None`, the title has the last NLL.
    pub kept: Option<[f64; 2]>,
    /// Standard error of the NLL in the title, or of the KL divergence if the entropy is known.
    pub nll_stderr: Option<f64>,
    /// Entropy of the density in nats, the lower bound of the NLL.
    pub entropy: Option<f64>,
}

const LEFT: u32 = 180;
const RIGHT: u32 = 60;
const TOP: u32 = 110;
const GAP: u32 = 90;
const BELOW: u32 = 130;
/// Space between panels side by side, for the labels of the right panel; and the right panel's share of the width.
const BESIDE: u32 = 150;
const ENLARGED: f64 = 0.36;
/// A last phase with a smaller share of the updates is enlarged.
const SHORT: f64 = 0.15;
/// The window of the moving average is the number of points of a phase divided by this.
const SMOOTHED: usize = 30;

/// Draws the training losses (a thin line) and their moving average (a thick line), the validation NLL (dots; a ring
/// marks the best weights) and the entropy (dashed).
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
    let all = || curve.phases.iter().flat_map(|p| p.loss).chain(curve.nll);
    let updates = span(all().map(|v| v[0]).chain([0.0]));
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
        let whole = rect(panels - 1);
        let short = lower.last().filter(|(i, phase)| *i > 0 && is_short(phase, updates));
        let width = (f64::from(whole.width - BESIDE) * ENLARGED) as u32;
        let rect =
            if short.is_some() { Rect { width: whole.width - BESIDE - width, ..whole } } else { whole };
        let mut panel = Panel::new(&mut sheet, rect, updates, &lower, curve.nll, curve.entropy);
        panel.frame("NLL (nats)", &starts, true)?;
        panel.phases(&lower, true);
        panel.validation(curve, true);
        if let Some(&last) = short {
            let during = span(last.1.loss.iter().map(|v| v[0]));
            let nll: Vec<_> = curve.nll.iter().copied().filter(|v| v[0] >= during[0]).collect();
            let rect = Rect { x: whole.right() - width, width, ..whole };
            let mut panel = Panel::new(&mut sheet, rect, during, &[last], &nll, curve.entropy);
            panel.frame("", &[], true)?;
            panel.phases(&[last], false);
            let kept = curve.kept.filter(|kept| kept[0] >= during[0]);
            panel.validation(&LossCurve { nll: &nll, kept, ..*curve }, false);
            panel.sheet.text(last.1.name, [rect.x as i32, rect.y as i32 - 34], LABEL - 2, Anchor::Left, INK);
        }
    }
    sheet.title(&title(curve), Rect { y: 96, ..rect(0) });
    Ok(sheet.figure)
}

/// Whether a phase is too short to be seen on the axis of all updates.
fn is_short(phase: &LossPhase, updates: [f64; 2]) -> bool {
    let [first, last] = span(phase.loss.iter().map(|v| v[0]));
    phase.loss.len() > 1 && last - first < SHORT * (updates[1] - updates[0])
}

/// The title: the final validation NLL, or the objective if there is none.
fn title(&LossCurve { nll, kept, nll_stderr, entropy, phases }: &LossCurve) -> String {
    let error = nll_stderr.map_or_else(String::new, |stderr| format!(" ± {stderr:.3}"));
    match (kept.or(nll.last().copied()), entropy) {
        (Some([_, nll]), Some(entropy)) => {
            let kl = nll - entropy;
            format!("Validation NLL {nll:.3} nats: entropy {entropy:.3} + KL divergence {kl:.3}{error}")
        }
        (Some([update, nll]), None) if kept.is_some() => {
            let update = thousands(&format!("{update:.0}"));
            format!("Best validation NLL {nll:.3}{error} nats, at update {update}")
        }
        (Some([_, nll]), None) => format!("Validation NLL {nll:.3}{error} nats"),
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
        let validation = bulk(nll.iter().map(|v| v[1]), 0.8);
        let [low, high] = span(training.into_iter().chain(validation).flatten().chain(entropy));
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

    /// The losses of phases; the legend has their names if `named` is true.
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

    /// The validation NLL with a dot per validation and a ring around `kept`, and the entropy as a dashed line.
    /// They have names if `named` is true.
    fn validation(&mut self, &LossCurve { nll, kept, entropy, .. }: &LossCurve, named: bool) {
        if let Some(entropy) = entropy {
            let ends = self.x.range.map(|x| self.at([x, entropy]));
            for dash in dashes(&ends) {
                self.sheet.curve(&dash, 2.5, INK, 1.0);
            }
            if named {
                let at = [ends[0][0] as i32 + 16, ends[0][1] as i32 - 22];
                self.sheet.text(&format!("entropy {entropy:.3}"), at, TICK, Anchor::Left, INK);
            }
        }
        let color = SERIES[2];
        self.curve(nll, 3.5, color, 1.0);
        for p in nll {
            self.curve(&[*p], 13.0, color, 1.0);
        }
        if let Some(kept) = kept {
            for (width, color) in [(30.0, INK), (22.0, [255; 3]), (13.0, color)] {
                self.curve(&[kept], width, color, 1.0);
            }
        }
        if named && !(nll.is_empty() && kept.is_none()) {
            self.legend("validation NLL", color);
        }
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
    let points = || curve.phases.iter().flat_map(|p| p.loss).chain(curve.nll).chain(&curve.kept);
    let values = || points().flatten().chain(&curve.entropy);
    if let Some((index, value)) = values().enumerate().find(|(_, v)| !v.is_finite()) {
        return Err(PlotError::Value { what: "value of the loss curve", index, value: *value });
    }
    if curve.phases.iter().all(|p| p.loss.is_empty()) && curve.nll.is_empty() {
        return Err(PlotError::Nothing { what: "losses" });
    }
    Ok(())
}

/// Least and largest value; equal values are moved apart by 1.
fn span(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let [low, high] = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], v| [l.min(v), h.max(v)]);
    if high > low { [low, high] } else { [low - 0.5, low + 0.5] }
}

/// The least value and a quantile, at which the axis ends so that the losses of the first updates do not set its scale.
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

/// At most about 1,500 evenly spaced points, including the last. The figure has too few columns to show more.
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
            kept: None,
            nll_stderr: Some(0.01),
            entropy: Some(1.38),
        })
        .unwrap();
        let names = |figure: &Figure| -> Vec<String> {
            let text =
                |mark: &Mark| if let Mark::Text { text, .. } = mark { Some(text.clone()) } else { None };
            figure.marks.iter().filter_map(text).collect()
        };
        let (loss, nll_kl) =
            ("flow-matching loss", "Validation NLL 1.420 nats: entropy 1.380 + KL divergence 0.040 ± 0.010");
        assert!(
            [loss, nll_kl, "NLL (nats)"].iter().all(|name| names(&both).iter().any(|found| found == name))
        );
        // The last phase has a twentieth of the updates, so it also has a panel of its own.
        assert!(names(&both).contains(&"maximum likelihood".to_owned()));
        let one = LossCurve { phases: &phases[1..], nll: &nll, kept: None, nll_stderr: None, entropy: None };
        let one = loss_curve(&one).unwrap();
        assert!(!names(&one).contains(&"maximum likelihood".to_owned()));
        assert!(!names(&one).contains(&loss.to_owned()));
        assert_eq!([both.width, both.height, one.height], [CANVAS[0], CANVAS[1], CANVAS[1]]);
    }

    #[test]
    fn the_title_has_the_weights_that_were_kept() {
        let nll = [[100.0, 6.7], [200.0, 7.0]];
        let curve = |kept| LossCurve { phases: &[], nll: &nll, kept, nll_stderr: Some(0.1), entropy: None };
        assert_eq!(title(&curve(None)), "Validation NLL 7.000 ± 0.100 nats");
        let kept = title(&curve(Some([1745.0, 6.7])));
        assert_eq!(kept, "Best validation NLL 6.700 ± 0.100 nats, at update 1,745");
    }

    #[test]
    fn a_ring_marks_the_weights_that_were_kept() {
        let nll = [[100.0, 6.7], [200.0, 7.0]];
        let marks = |kept| {
            let curve = LossCurve { phases: &[], nll: &nll, kept, nll_stderr: None, entropy: None };
            loss_curve(&curve).unwrap().marks.len()
        };
        assert_eq!(marks(Some([100.0, 6.7])), marks(None) + 3);
    }

    #[test]
    fn a_single_value_and_a_constant_are_drawn() {
        for loss in [&[[0.0, 1.0]][..], &[[0.0, 1.0], [5.0, 1.0]]] {
            let phases = [LossPhase { name: "a", unit: "nats", loss }];
            assert!(
                loss_curve(&LossCurve {
                    phases: &phases,
                    nll: &[],
                    kept: None,
                    nll_stderr: None,
                    entropy: Some(1.0)
                })
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
        let none = LossCurve { phases: &[], nll: &[], kept: None, nll_stderr: None, entropy: None };
        assert!(matches!(loss_curve(&none), Err(PlotError::Nothing { .. })));
        let nan = LossCurve { nll: &[[1.0, f64::NAN]], ..none };
        assert!(loss_curve(&nan).unwrap_err().to_string().contains("is NaN"));
        let nan = LossCurve { kept: Some([1.0, f64::NAN]), ..none };
        assert!(loss_curve(&nan).is_err_and(|e| e.to_string().contains("is NaN")));
    }
}
