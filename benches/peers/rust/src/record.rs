//! The output of a measurement: one JSON object, or one row of a table.

use crate::measure::Timed;

/// A measurement and its settings.
#[derive(Clone, Debug)]
pub struct Record {
    pub timed: Timed,
    pub problem: &'static str,
    /// The name of the compiler options: `plain`, `native`.
    pub flags: String,
    /// For an ensemble: the number of threads, and the precision of its states.
    pub ensemble: Option<(usize, &'static str)>,
}

impl Record {
    /// One line of JSON. An error that is not finite is `null`.
    pub fn json(&self) -> String {
        let Timed { peer, method, tol, ms, error, num_steps, num_field_evals, num_factorizations } =
            &self.timed;
        let Record { problem, flags, .. } = self;
        let error = if error.is_finite() { format!("{error:.4e}") } else { "null".to_owned() };
        let ensemble = self.ensemble.map_or(String::new(), |(threads, precision)| {
            format!(",\"threads\":{threads},\"precision\":\"{precision}\"")
        });
        let factorizations = match num_factorizations {
            0 => String::new(),
            _ => format!(",\"num_factorizations\":{num_factorizations}"),
        };
        format!(
            "{{\"peer\":\"{peer}\",\"problem\":\"{problem}\",\"method\":\"{method}\",\"tol\":{tol:.3e},\
             \"ms\":{ms:.6},\"error\":{error},\"num_steps\":{num_steps},\"num_field_evals\":{num_field_evals}\
             {factorizations},\"flags\":\"{flags}\"{ensemble}}}"
        )
    }

    /// The column names of [`Record::row`].
    pub const HEADER: &str =
        "peer                    method        tol       ms         error     steps      evals      ns/step";

    /// One row of a table.
    pub fn row(&self) -> String {
        let Timed { peer, method, tol, ms, error, num_steps, num_field_evals, .. } = &self.timed;
        let ns = ms * 1e6 / *num_steps as f64;
        format!(
            "{peer:23} {method:12} {tol:8.1e} {ms:10.5} {error:10.2e} {num_steps:8} {num_field_evals:10} {ns:12.1}"
        )
    }

    /// The title above the rows of a problem.
    pub fn title(&self) -> String {
        let Record { problem, flags, .. } = self;
        match self.ensemble {
            None => format!("{problem}, {flags}"),
            Some((1, precision)) => format!("{problem}, {flags}, 1 thread, {precision}"),
            Some((threads, precision)) => format!("{problem}, {flags}, {threads} threads, {precision}"),
        }
    }
}
