//! Names from files in messages: a list of columns, a heading, a cell. Files may hold thousands of names, or lines
//! that are no text, so a message shows a part of them.

use std::borrow::Cow;

/// The largest number of names in a message.
const NAMES: usize = 6;
/// The largest number of characters of a name in a message.
const LETTERS: usize = 40;

/// The names, separated by commas; of more than six, the first six and the number of `noun`s.
pub fn listed(names: &[impl AsRef<str>], noun: &str) -> String {
    let first: Vec<Cow<'_, str>> = names.iter().take(NAMES).map(|name| shortened(name.as_ref())).collect();
    let more = if names.len() > NAMES { format!(", ... ({} {noun})", names.len()) } else { String::new() };
    first.join(", ") + &more
}

/// A name of at most 40 characters; a longer one ends with dots. Control characters are replaced by spaces.
pub fn shortened(name: &str) -> Cow<'_, str> {
    let is_long = name.chars().nth(LETTERS).is_some();
    if !is_long && !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    let kept = if is_long { LETTERS - 3 } else { LETTERS };
    let text: String = name.chars().take(kept).map(|c| if c.is_control() { ' ' } else { c }).collect();
    Cow::Owned(if is_long { text + "..." } else { text })
}

/// The name that was probably meant: without regard to letter case, spaces and punctuation, the only one that equals the text
/// asked for, or else the only one that begins with it.
pub fn meant<'a>(asked: &str, names: &'a [String]) -> Option<&'a str> {
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let asked = plain(asked.trim_end_matches("..."));
    let only = |fits: &dyn Fn(&str) -> bool| -> Option<&'a str> {
        let mut found = names.iter().filter(|name| fits(&plain(name)));
        found.next().filter(|_| found.next().is_none()).map(String::as_str)
    };
    let is_some = !asked.is_empty();
    only(&|name| name == asked).or_else(|| only(&|name| name.starts_with(&asked))).filter(|_| is_some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ode::tests::draw::Draw;

    #[test]
    fn a_name_is_meant_if_it_is_the_only_one() {
        let names =
            ["Origin", "Adelie Penguin (Pygoscelis adeliae)", "a b", "a_b", "ab c"].map(str::to_owned);
        for (asked, name) in [
            ("origin", Some("Origin")),
            ("ORI", Some("Origin")),
            ("Adelie Penguin (Pygosc...", Some("Adelie Penguin (Pygoscelis adeliae)")),
            ("abc", Some("ab c")),
            ("ab", None),
            ("", None),
            ("year", None),
        ] {
            assert_eq!(meant(asked, &names), name, "{asked}");
        }
    }

    /// Lists of 0 to 2,000 names of 0 to 2,000 characters, some of which are control characters.
    #[test]
    fn lists_of_any_names_are_short_and_hold_the_first_ones() {
        let (mut draw, mut found) = (Draw(5), [0; 4]);
        for _ in 0..300 {
            let count = [0, 1, NAMES, NAMES + 1, 2_000][draw.below(5)];
            let name = |draw: &mut Draw| -> String {
                let letters = [0, 1, LETTERS, LETTERS + 1, 2_000][draw.below(5)];
                (0..letters).map(|_| ['a', 'é', '\t', '\x1b', '7'][draw.below(5)]).collect()
            };
            let names: Vec<String> = (0..count).map(|_| name(&mut draw)).collect();
            let text = listed(&names, "columns");
            assert!(text.chars().count() <= NAMES * (LETTERS + 2) + 30, "{text}");
            assert!(!text.contains(char::is_control), "{text:?}");
            let mut rest = &text[..];
            for name in names.iter().take(NAMES) {
                let plain: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                let is_long = plain.chars().count() > LETTERS;
                let expected: String = if is_long {
                    plain.chars().take(LETTERS - 3).chain("...".chars()).collect()
                } else {
                    plain
                };
                rest = rest.strip_prefix(&expected[..]).unwrap_or_else(|| panic!("{expected:?} {text:?}"));
                rest = rest.strip_prefix(", ").unwrap_or(rest);
                found[usize::from(is_long)] += 1;
            }
            let is_cut = count > NAMES;
            assert_eq!(rest, if is_cut { format!("... ({count} columns)") } else { String::new() });
            found[2 + usize::from(is_cut)] += 1;
        }
        assert!(found.iter().all(|&n| n > 50), "{found:?}");
    }
}
