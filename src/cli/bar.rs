//! What runs take and where they stand, on standard error: a bar where that is a terminal, else a line every few seconds.

use super::table::{grouped, seconds};
use crate::train::{Progress, Stage};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// Two lines of at most 80 columns: what a narrow terminal cuts is the least wanted.
const TRAINING: &str = "{prefix:.bold} {bar:20.cyan/blue} {pos}/{len}  {msg}";
const COUNTING: &str = "{prefix} {bar:20.cyan/blue} {percent}%  {msg}";
/// How often the text is made anew; a bar redrawn at every update would cost more than it tells.
const EVERY: Duration = Duration::from_millis(100);
/// How often a line is written where there is no bar.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The bar of a training run.
pub struct Bar {
    drawn: ProgressBar,
    shown: Option<Instant>,
    told: Instant,
    stage: Option<Stage>,
}

impl Bar {
    /// A hidden bar until the first progress.
    pub fn new() -> Bar {
        Bar { drawn: drawn(TRAINING), shown: None, told: Instant::now(), stage: None }
    }

    /// Shows where the run stands.
    pub fn show(&mut self, progress: &Progress) {
        let last = progress.update == progress.updates;
        if !last && self.shown.is_some_and(|t| t.elapsed() < EVERY) {
            return;
        }
        (self.shown, self.stage) = (Some(Instant::now()), None);
        if self.drawn.is_hidden() {
            if self.told.elapsed() >= LINE_EVERY {
                self.told = Instant::now();
                super::note(&line(progress));
            }
            return;
        }
        let (phase, phases) = (progress.phase + 1, progress.phases);
        self.drawn.set_prefix(format!("{phase}/{phases} {}", progress.objective.title()));
        self.drawn.set_message(message(progress));
        self.drawn.set_length(progress.updates);
        self.drawn.set_position(progress.update);
    }

    /// Shows what is done beside updates.
    pub fn stage(&mut self, stage: Stage) {
        if self.stage.replace(stage) == Some(stage) {
            return;
        }
        self.drawn.set_message(format!("{stage} ..."));
        if !self.drawn.is_hidden() && self.shown.is_some() {
            self.drawn.tick();
        }
    }

    /// Prints a line above the bar.
    pub fn note(&self, text: &str) {
        // An empty bar is not worth drawing.
        if self.drawn.is_hidden() || self.shown.is_none() {
            super::note(text);
        } else {
            self.drawn.println(text);
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.drawn.finish_and_clear();
    }
}

/// The bar of something that is counted: points, cells.
pub struct Count {
    bar: ProgressBar,
    what: &'static str,
    total: usize,
    done: usize,
    begun: Instant,
    told: Instant,
}

impl Count {
    /// Of so many things.
    pub fn new(total: usize, what: &'static str) -> Count {
        let bar = drawn(COUNTING);
        bar.set_length(total as u64);
        let now = Instant::now();
        Count { bar, what, total, done: 0, begun: now, told: now }
    }

    /// So many more are done.
    pub fn add(&mut self, done: usize) {
        self.done += done;
        let left =
            self.begun.elapsed().as_secs_f64() * (self.total - self.done) as f64 / self.done.max(1) as f64;
        let text = format!("{} left", seconds(left));
        if !self.bar.is_hidden() {
            self.bar.set_prefix(format!("{} {}", grouped(self.total as u64), self.what));
            self.bar.set_position(self.done as u64);
            self.bar.set_message(text);
        } else if self.told.elapsed() >= LINE_EVERY {
            self.told = Instant::now();
            let [done, total] = [self.done, self.total].map(|n| grouped(n as u64));
            super::note(&format!("{done} of {total} {}, {text}", self.what));
        }
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn drawn(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(template).expect("invariant: the template is well formed");
    bar.set_style(style.progress_chars("━╸─"));
    bar
}

/// The second line of the bar, and the time left in the first.
fn message(p: &Progress) -> String {
    let left = seconds(p.seconds_left.max(0.0));
    let time = if p.update == p.updates { "trained".to_owned() } else { format!("{left} left") };
    format!("{time}\n    {}", numbers(p))
}

fn numbers(p: &Progress) -> String {
    let gap = p.gap_nats.map_or_else(String::new, |gap| format!("  gap {gap:.3} nats"));
    let gap = p.bits_per_dim.map_or(gap, |bits| format!("  {bits:.4} bits/dim"));
    format!("loss {:.4} {}  {:.1} ms/update{gap}", p.loss, p.objective.unit(), p.ms)
}

/// Everything in one line.
fn line(p: &Progress) -> String {
    let [update, updates] = [p.update, p.updates].map(grouped);
    let left = seconds(p.seconds_left.max(0.0));
    format!("{} {update} of {updates}  {left} left  {}", p.objective.title(), numbers(p))
}
