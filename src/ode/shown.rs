//! Numbers in messages.

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
