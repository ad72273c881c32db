//! Durations as people write them: `90s`, `10m`, `1h30m`, or a number of seconds.

/// The units of time in the order in which a duration names them, with their seconds.
const UNITS: [(&str, f64); 4] = [("d", 86_400.0), ("h", 3_600.0), ("m", 60.0), ("s", 1.0)];

/// Why a text is not a duration.
const ACCEPTED: &str = "give seconds, such as 90, or days, hours, minutes and seconds with their letters, such as 90s, 10m or 1h30m";

/// The seconds of a duration: a number, or numbers with d, h, m or s, each unit at most once and the longest first.
///
/// # Errors
/// Any other text.
pub fn seconds(text: &str) -> Result<f64, String> {
    text.trim().parse().ok().or_else(|| with_units(text)).ok_or_else(|| ACCEPTED.to_owned())
}

fn with_units(text: &str) -> Option<f64> {
    let (mut rest, mut units, mut seconds) = (text.trim(), UNITS.iter(), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let number: f64 = rest[..end].parse().ok()?;
        let letter = rest.get(end..=end)?;
        // The search continues behind the unit of the last part.
        let (_, unit) = units.find(|(name, _)| letter.eq_ignore_ascii_case(name))?;
        seconds += number * unit;
        rest = rest[end + 1..].trim_start();
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: usize = 20_000;

    /// Random numbers below a bound, by SplitMix64.
    struct Draws(u64);

    impl Draws {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) % n
        }
    }

    /// Drawn: each unit or not, numbers from 0 to 999, whole or with a fraction, letters of both cases, spaces between
    /// parts.
    #[test]
    fn a_duration_is_the_sum_of_its_parts() {
        let cases = std::env::var("FLOWLINE_CASES").map_or(CASES, |n| n.parse().expect("a number"));
        let (mut draws, mut by_length) = (Draws(1), [0; 5]);
        for _ in 0..cases {
            let (mut text, mut expected, mut length) = (String::new(), 0.0, 0);
            for (name, unit) in UNITS {
                if draws.below(2) == 0 {
                    continue;
                }
                let whole = draws.below(1000);
                let number = if draws.below(3) == 0 { format!("{whole}.5") } else { whole.to_string() };
                let letter = if draws.below(4) == 0 { name.to_uppercase() } else { name.to_owned() };
                let space = if draws.below(5) == 0 { " " } else { "" };
                text += &[&*number, &letter, space].concat();
                expected += number.parse::<f64>().unwrap() * unit;
                length += 1;
            }
            by_length[length] += 1;
            let found = seconds(&text);
            assert_eq!(found.is_ok(), length > 0, "{text:?}");
            found.into_iter().for_each(|found| assert!((found - expected).abs() < 1e-6, "{text:?}: {found}"));
        }
        assert!(by_length.iter().all(|&n| n * 40 > cases), "{by_length:?}");
    }

    /// Drawn: texts of up to 6 characters of numbers, units and others. Such a text is a number, or its parts are in order.
    #[test]
    fn other_texts_are_refused_with_what_is_accepted() {
        let (mut draws, mut counts) = (Draws(2), [0; 2]);
        let letters: Vec<char> = "0159.dhmsHM -+eµx".chars().collect();
        for _ in 0..CASES {
            let text: String = (0..draws.below(7)).map(|_| letters[draws.below(17) as usize]).collect();
            let found = seconds(&text);
            counts[usize::from(found.is_ok())] += 1;
            match found {
                Err(message) => assert!(["90s", "10m", "1h30m"].iter().all(|words| message.contains(words))),
                Ok(_) if text.trim().parse::<f64>().is_ok() => {}
                Ok(_) => {
                    let named =
                        text.to_lowercase().chars().filter(char::is_ascii_alphabetic).collect::<String>();
                    let place = |c: char| "dhms".find(c).expect("a unit");
                    let places: Vec<usize> = named.chars().map(place).collect();
                    assert!(places.is_sorted_by(|a, b| a < b) && !text.contains(['-', '+']), "{text:?}");
                }
            }
        }
        assert!(counts.iter().all(|&n| n > 500), "{counts:?}");
        assert_eq!(seconds("1h30m"), Ok(5_400.0));
        assert_eq!([seconds("280"), seconds("1e3"), seconds(" 10m ")], [Ok(280.0), Ok(1e3), Ok(600.0)]);
        for text in ["", "m", "10x", "30m1h", "1m1m", "10m30", "1.2.3s", "-10m", "10 minutes"] {
            assert!(seconds(text).is_err(), "{text:?}");
        }
    }
}
