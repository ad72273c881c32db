//! The measured rates of this machine in one line, for comparison with the cost of an update.

use super::table::quantity;
use flowline::__internal::{Level, Peak};

/// The rates as text.
pub fn line(peak: &Peak) -> String {
    let rate = |gflops: f64| quantity(gflops * 1e9, "FLOP/s");
    let threads = match peak.threads {
        1 => "one thread".to_owned(),
        n => format!("{n} threads ({} on one)", rate(peak.gflops_one_thread)),
    };
    let copies = quantity(peak.bytes_per_s, "B/s");
    let (products, level) = (rate(peak.gflops), Level::detect());
    format!(
        "{products} of matrix products on {threads}, copies in cache at {copies}, instructions of {level}"
    )
}
