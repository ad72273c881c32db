//! Progress on standard error: a bar on a terminal, otherwise a line every 10 seconds or JSON lines.

use super::live::Live;
use super::say::{failure, note};
use super::table::{grouped, seconds};
use super::typed::flags;
use flowline::__internal::Activity;
use flowline::train::Progress;
use std::time::{Duration, Instant};

/// Minimum time between redraws of the bar. Redraws after every update would only take time.
const EVERY: Duration = Duration::from_millis(100);
/// Minimum time between lines if no bar is drawn.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Minimum time between updates written as JSON.
const JSON_EVERY: Duration = Duration::from_secs(1);

/// The bar of a training run: two lines, usually of at most 80 columns. A narrow terminal cuts off their right ends, the
/// time left and the validation score.
pub struct Bar {
    live: Live,
    /// The text on screen: the phase and its gauge; then the time left and the second line, or an activity.
    text: [String; 2],
    shown: Option<Instant>,
    written: Instant,
    stage: Option<(Activity, u32)>,
    /// Whether everything is written as JSON lines.
    json: bool,
}

impl Bar {
    /// A bar that is hidden until the first progress.
    pub fn new(json: bool) -> Bar {
        let live = if json { Live::hidden() } else { Live::new() };
        Bar { live, text: Default::default(), shown: None, written: Instant::now(), stage: None, json }
    }

    /// Shows the progress of the run.
    pub fn show(&mut self, progress: &Progress) {
        let last = progress.done >= 1.0;
        if !last && self.shown.is_some_and(|t| t.elapsed() < EVERY) {
            return;
        }
        (self.shown, self.stage) = (Some(Instant::now()), None);
        if self.live.is_hidden() {
            let every = if self.json { JSON_EVERY } else { LINE_EVERY };
            if self.written.elapsed() >= every || (last && self.json) {
                self.written = Instant::now();
                if self.json { event(&json(progress)) } else { note(&line(progress)) }
            }
            return;
        }
        let Progress { update, updates, done, phase, phases, .. } = *progress;
        let title = self.live.title(&format!("{}/{phases} {}", phase + 1, progress.objective.title()));
        let gauge = self.live.gauge((done * 1e3) as u64, 1_000);
        self.draw([format!("{title} {gauge} {update}/{updates}"), message(progress)]);
    }

    /// Shows an activity other than updates, and the completed share of it.
    pub fn stage(&mut self, stage: Activity, done: f64) {
        let percent = (100.0 * done) as u32;
        let before = self.stage.replace((stage, percent));
        if before == Some((stage, percent)) {
            return;
        }
        if self.live.is_hidden() {
            let is_new = before.is_none_or(|(before, _)| before != stage);
            if is_reported(stage, is_new, percent, self.written.elapsed()) {
                self.written = Instant::now();
                if self.json {
                    let name = format!("{stage:?}").to_lowercase();
                    event(&serde_json::json!({"event": "stage", "stage": name, "done": done}));
                } else {
                    note(&if percent == 0 { format!("{stage}") } else { format!("{stage}: {percent}%") });
                }
            }
        } else if self.is_drawn() {
            let of_phase = std::mem::take(&mut self.text[0]);
            let text = if percent == 0 { "...".to_owned() } else { format!("{percent}%") };
            self.draw([of_phase, format!("{stage} {text}")]);
        }
    }

    /// Prints a line of the library: an error even with `--quiet`, other lines as JSON if requested, otherwise above the bar if it is
    /// drawn.
    pub fn note(&mut self, text: &str) {
        let text = &flags(text);
        if let Some(text) = text.strip_prefix("error: ") {
            // The job of several ranks ends before its command can print the error.
            failure(text, Some(1));
        } else if self.json {
            event(&serde_json::json!({"event": "note", "text": text}));
        } else if self.is_drawn() {
            self.live.above(text, &self.text.join("  "));
        } else {
            note(text);
        }
    }

    fn draw(&mut self, text: [String; 2]) {
        self.text = text;
        self.live.draw(&self.text.join("  "));
    }

    /// Whether the bar is on screen: true on a terminal after the first progress.
    fn is_drawn(&self) -> bool {
        !self.live.is_hidden() && self.shown.is_some()
    }
}

/// Whether a line is written about an activity that is not drawn, so long after the last line. Validation is frequent and
/// short, so its start gets no line of its own. The other activities end a run. The end of an activity gets no line: what
/// follows it does.
fn is_reported(stage: Activity, is_new: bool, percent: u32, since: Duration) -> bool {
    let is_begun = is_new && stage != Activity::Measuring;
    percent < 100 && (is_begun || (percent > 0 && since >= LINE_EVERY))
}

/// A progress bar for a count of points, images or cells.
pub struct Count {
    live: Live,
    what: &'static str,
    total: usize,
    done: usize,
    begun: Instant,
    written: Instant,
}

impl Count {
    /// A progress bar for `total` items.
    pub fn new(total: usize, what: &'static str) -> Count {
        let now = Instant::now();
        Count { live: Live::new(), what, total, done: 0, begun: now, written: now }
    }

    /// Counts `done` more items.
    pub fn add(&mut self, done: usize) {
        self.at(self.done + done);
    }

    /// Sets the number of items that are done.
    pub fn at(&mut self, done: usize) {
        self.done = done;
        let every = if self.live.is_hidden() { LINE_EVERY } else { EVERY };
        if self.written.elapsed() < every {
            return;
        }
        self.written = Instant::now();
        let Count { total, done, what, .. } = *self;
        let left = self.begun.elapsed().as_secs_f64() * (total - done) as f64 / done.max(1) as f64;
        let left = seconds(left);
        if self.live.is_hidden() {
            let [done, total] = [done, total].map(|n| grouped(n as u64));
            note(&format!("{done} of {total} {what}, {left} left"));
        } else {
            let gauge = self.live.gauge(done as u64, total as u64);
            let percent = 100.0 * done as f64 / total.max(1) as f64;
            self.live.draw(&format!("{} {what} {gauge} {percent:.0}%  {left} left", grouped(total as u64)));
        }
    }
}

/// The time left, which ends the first line of the bar, and the whole second line.
fn message(p: &Progress) -> String {
    let left = seconds(p.seconds_left.max(0.0));
    let time = if p.done >= 1.0 { "trained".to_owned() } else { format!("{left} of training left") };
    format!("{time}\n    {}", numbers(p))
}

fn numbers(p: &Progress) -> String {
    let score = match (p.bits_per_dim, p.kl_estimate_nats, p.gap_nats, p.validation_nats) {
        (Some(bits), ..) => format!("  {bits:.3} bits/dim"),
        // Newer than the last measured divergence, which may be that of the first update.
        (_, Some(kl), ..) => format!("  KL about {:.4} nats", kl.mean),
        (_, _, Some(kl), _) => format!("  KL {kl:.3} nats"),
        (.., Some(nll)) => format!("  validation NLL {nll:.3}"),
        _ => String::new(),
    };
    format!("loss {:.4} {}  {:.1} ms/update{score}", p.loss, p.loss_unit, p.ms)
}

/// A line of JSON.
fn event(event: &serde_json::Value) {
    note(&event.to_string());
}

/// All progress in one line.
fn line(p: &Progress) -> String {
    let [update, updates] = [p.update, p.updates].map(grouped);
    let left = seconds(p.seconds_left.max(0.0));
    format!("{} {update} of {updates}  {left} of training left  {}", p.objective.title(), numbers(p))
}

/// Progress as JSON. Values that are also in the report have the same names there.
fn json(p: &Progress) -> serde_json::Value {
    serde_json::json!({
        "event": "update", "update": p.update, "updates": p.updates, "done": p.done,
        "phase": p.objective, "phase_number": p.phase + 1, "phases": p.phases,
        "loss": p.loss, "ms_per_update": p.ms, "seconds_left": p.seconds_left.max(0.0),
        "gap_nats": p.gap_nats.map(|kl| kl.mean), "gap_stderr_nats": p.gap_nats.and_then(|kl| kl.stderr),
        "kl_estimate_nats": p.kl_estimate_nats.map(|kl| kl.mean),
        "kl_estimate_stderr_nats": p.kl_estimate_nats.and_then(|kl| kl.stderr),
        "validation_nats": p.validation_nats.map(|nll| nll.mean),
        "validation_stderr_nats": p.validation_nats.and_then(|nll| nll.stderr),
        "bits_per_dim": p.bits_per_dim.map(|bits| bits.mean),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowline::data::Points;
    use flowline::train::{TrainOptions, Trainer, extra::ObjectiveKind};

    /// All activities, shares and times since the last line: an activity that ends is not reported, so a run with many
    /// validations has no line for each of them.
    #[test]
    fn only_the_middle_of_a_long_activity_and_the_start_of_the_last_ones_are_reported() {
        let mut reported = [0; 2];
        for stage in [Activity::Measuring, Activity::Testing, Activity::Evaluating, Activity::Drawing] {
            for percent in 0..=100 {
                for (is_new, seconds) in [(true, 0), (true, 11), (false, 0), (false, 11)] {
                    let is_middle = percent > 0 && percent < 100 && seconds > 10;
                    let begins = is_new && percent < 100 && stage != Activity::Measuring;
                    let found = is_reported(stage, is_new, percent, Duration::from_secs(seconds));
                    assert_eq!(found, is_middle || begins, "{stage} {percent} {is_new} {seconds}");
                    reported[usize::from(found)] += 1;
                }
            }
        }
        assert!(reported.iter().all(|&n| n > 100), "{reported:?}");
    }

    #[test]
    fn the_line_of_a_table_has_its_validation_nll_and_the_unit_of_the_loss() {
        let units = [
            (ObjectiveKind::FlowMatching, " MSE "),
            (ObjectiveKind::MaximumLikelihood, " nats (standardized) "),
        ];
        for (objective, unit) in units {
            let rows: Vec<[f64; 1]> = (0..40).map(|i| [f64::from(i).sin()]).collect();
            let options = TrainOptions {
                updates: Some(5),
                objective: Some(objective),
                width: Some(4),
                depth: Some(1),
                batch: Some(16),
                fixed_steps: Some(2),
                ..TrainOptions::default()
            };
            let mut lines = Vec::new();
            let trainer = Trainer::new(Points::from_rows(rows).unwrap()).options(&options);
            trainer.on_update(|progress| lines.push(line(progress))).run().unwrap();
            for words in [" of training left", unit, "  validation NLL "] {
                assert!(lines[4].contains(words), "{words}: {}", lines[4]);
            }
        }
    }
}
