//! Errors in the words of the command line.
//!
//! A message of the library has the name of an option in backquotes, for example `` `fixed_steps`=0: must be at least 1 ``.
//! Here it becomes the flag, `--fixed-steps`, or the letter that the user typed. A preset has the name that run folders
//! store, of which the user may have typed another.

use super::Cli;
use super::documented::DiffraxExample;
use clap::{Arg, Command, CommandFactory};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::OnceLock;

/// What the library calls otherwise than the command line does. Longer texts come first.
const OTHERWISE: [(&str, &str); 5] = [
    ("the new path as `run_dir`", "--resume and the new path as --out"),
    ("the same `run_dir`", "--resume"),
    ("`run_dir`", "--out"),
    ("`with_labels`", "--validation-labels or --test-labels"),
    ("`class`", "--label"),
];

/// A text of the library with the flags of its options.
pub fn flags(text: &str) -> String {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let command = Cli::command();
        let args = command.get_subcommands().chain([&command]).flat_map(Command::get_arguments);
        args.filter_map(|arg| Some(arg.get_long()?.replace('-', "_"))).collect()
    });
    let text = OTHERWISE.iter().fold(text.to_owned(), |text, (ours, theirs)| text.replace(ours, theirs));
    dashed(&text, |name| names.contains(name))
}

/// A text with dashes in place of the backquotes around options.
pub fn dashed(text: &str, is_option: impl Fn(&str) -> bool) -> String {
    let (mut rest, mut found) = (text, String::new());
    while let Some((before, after)) = rest.split_once('`') {
        found += before;
        if let Some((name, behind)) = after.split_once('`').filter(|(name, _)| is_option(name)) {
            found += "--";
            found += &name.replace('_', "-");
            rest = behind;
        } else {
            found.push('`');
            rest = after;
        }
    }
    found + rest
}

/// A message with the flags of its options, each as it was typed. A first name that was typed too is kept.
pub fn as_typed(message: &str, command: &Command, arguments: &[OsString]) -> String {
    let texts: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let is_typed = |name: &str| texts.iter().any(|text| text.split('=').next() == Some(name));
    let mut message = flags(message);
    let subcommand = texts.iter().find_map(|text| command.find_subcommand(text));
    for arg in subcommand.iter().flat_map(|command| command.get_arguments()) {
        let Some(first) = first_name(arg) else { continue };
        let letter = letter(arg).filter(|letter| is_typed(letter) && !is_typed(&first));
        message = letter.map_or(message.clone(), |letter| replaced(&message, &first, &letter));
    }
    let [name, stored] = DiffraxExample::NAMES;
    match texts.iter().any(|text| text.ends_with(stored)) {
        true => message,
        false => replaced(&message, &format!("--preset={stored}"), &format!("--preset={name}")),
    }
}

/// The name that messages use: the long one, or the letter of an option without a long name.
fn first_name(arg: &Arg) -> Option<String> {
    let long = arg.get_long().map(|name| format!("--{name}"));
    long.or_else(|| arg.get_short().map(|letter| format!("-{letter}")))
}

/// The letter of an option that also has a long name.
fn letter(arg: &Arg) -> Option<String> {
    arg.get_short().filter(|_| arg.get_long().is_some()).map(|letter| format!("-{letter}"))
}

/// `text` with each whole word `from` replaced.
fn replaced(text: &str, from: &str, to: &str) -> String {
    let is_inner = |c: char| c.is_alphanumeric() || c == '-';
    let (mut parts, mut found) = (text.split(from), String::new());
    found.extend(parts.next());
    for part in parts {
        let is_part = part.starts_with(is_inner) || found.ends_with(is_inner);
        found.push_str(if is_part { from } else { to });
        found.push_str(part);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every option of every command with each of its names: the message has the typed name wherever it names the option,
    /// and every other option keeps its first name.
    #[test]
    fn every_option_is_named_as_it_was_typed() {
        let (command, mut renamed) = (Cli::command(), 0);
        for sub in command.get_subcommands() {
            let all: Vec<String> = sub.get_arguments().filter_map(first_name).collect();
            // No part of another word is replaced.
            let message =
                all.iter().map(|name| format!("{name}=0: not x{name} or {name}-x; leave {name} out;"));
            let message = message.collect::<Vec<_>>().join(" ");
            for arg in sub.get_arguments() {
                let Some(first) = first_name(arg) else { continue };
                for typed in letter(arg).into_iter().chain([first.clone()]) {
                    for parts in [vec![typed.clone(), "0".to_owned()], vec![format!("{typed}=0")]] {
                        let arguments = ["flowline".to_owned(), sub.get_name().to_owned()];
                        let arguments: Vec<OsString> =
                            arguments.into_iter().chain(parts).map(OsString::from).collect();
                        let found = as_typed(&message, &command, &arguments);
                        let of = |name: &String| if *name == first { &typed } else { name }.clone();
                        let line = |name: &String| {
                            let typed = of(name);
                            format!("{typed}=0: not x{name} or {name}-x; leave {typed} out;")
                        };
                        let expected: Vec<String> = all.iter().map(line).collect();
                        assert_eq!(found, expected.join(" "), "{arguments:?}");
                        renamed += u32::from(typed != first);
                    }
                }
            }
        }
        assert!(renamed >= 10, "{renamed}");
    }

    /// Every option of every command, between texts with backquotes of their own.
    #[test]
    fn options_get_dashes_and_other_words_in_backquotes_stay() {
        let command = Cli::command();
        let mut counted = 0;
        for long in command.get_subcommands().flat_map(Command::get_arguments).filter_map(Arg::get_long) {
            let name = long.replace('-', "_");
            let text = format!(
                "`a`b {name}`{name}`=`1, `in_place` `{name}`, {name}= ` `x {name}` run `flowline sample`"
            );
            let expected = format!(
                "`a`b {name}--{long}=`1, `in_place` --{long}, {name}= ` `x {name}` run `flowline sample`"
            );
            assert_eq!(flags(&text), expected);
            counted += 1;
        }
        assert!(counted > 60, "{counted}");
        let words = "another folder with `run_dir`; `class`=3; train with the same `run_dir`; the new path as `run_dir`";
        let expected =
            "another folder with --out; --label=3; train with --resume; --resume and the new path as --out";
        assert_eq!(flags(words), expected);
    }

    #[test]
    fn the_preset_has_the_name_that_was_typed() {
        let of = |text: &str| {
            let arguments: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            as_typed("`preset`=documented: must be default", &Cli::command(), &arguments)
        };
        assert_eq!(of("flowline train moons --preset diffrax"), "--preset=diffrax: must be default");
        assert_eq!(of("flowline train moons --preset=documented"), "--preset=documented: must be default");
        assert_eq!(of("flowline train moons --preset documented"), "--preset=documented: must be default");
    }
}
