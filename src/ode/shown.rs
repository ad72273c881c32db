//! Numbers in messages, and the ends of messages that depend on them.

use std::fmt;

/// The number as messages print it: all its digits, in scientific notation where the plain form is longer than
/// [`LONGEST`].
pub(crate) fn shown(x: f64) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        let plain = x.to_string();
        if plain.len() <= LONGEST { f.write_str(&plain) } else { write!(f, "{x:e}") }
    })
}

/// The largest number of characters of the plain form: 17 digits, a sign, a point and four zeros.
const LONGEST: usize = 24;

/// The ends of the times of `StepTo`, which are NaN if there are no times.
pub(super) fn ends(first: f64, last: f64) -> String {
    if first.is_nan() { "are empty".into() } else { format!("run from {} to {}", shown(first), shown(last)) }
}

/// A number near `other`, with as many digits as six digits of their difference have.
pub(super) fn rounded(x: f64, other: f64) -> String {
    let unit = 10.0_f64.powf((x - other).abs().log10().floor() - 5.0);
    let digits = (-unit.log10()).round();
    if (0.0..300.0).contains(&digits) && x.abs() < 1e6 {
        let text = format!("{x:.*}", digits as usize);
        // "-0.00000" and trailing zeros.
        return text.parse::<f64>().map_or(text, |x| format!("{:?}", x + 0.0));
    }
    format!("{x:?}")
}

/// The end of the message about dt0; t1 - t0 is NaN if t0 or t1 is traced.
pub(super) fn with_span(span: f64) -> String {
    if span.is_nan() { String::new() } else { format!(" (t1 - t0 = {span:e})") }
}

/// The end of the message about tolerances, for a state of several parts.
pub(super) fn per_part(parts: usize) -> String {
    if parts > 1 { format!(", or one value per part of the state ({parts})") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, shown};

    #[test]
    fn numbers_keep_their_value_and_stay_short() {
        for (x, text) in
            [(0.5, "0.5"), (1e-300, "1e-300"), (-1.7e300, "-1.7e300"), (0.1 + 0.2, "0.30000000000000004")]
        {
            assert_eq!(shown(x).to_string(), text);
        }
        assert_eq!([f64::NAN, f64::INFINITY].map(|x| shown(x).to_string()), ["NaN", "inf"]);
        let mut x = f64::MIN_POSITIVE / 3.0;
        while x < f64::MAX / 1e3 {
            for x in [x, -x] {
                let text = shown(x).to_string();
                assert!(text.parse() == Ok(x) && text.len() <= LONGEST + 1, "{text}");
            }
            x *= 1.37e2;
        }
    }
}
