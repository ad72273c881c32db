//! Errors in the words of the command line. The library names an option by its first long name, and a preset by the name
//! that run folders store. The user may have typed another name of the same thing.

use super::documented::DiffraxExample;
use clap::{Arg, Command};
use std::ffi::OsString;

/// A message with the names that were typed in place of the first ones. A name that was typed too is kept.
pub fn as_typed(message: &str, command: &Command, arguments: &[OsString]) -> String {
    let texts: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let is_typed = |name: &str| texts.iter().any(|text| text.split('=').next() == Some(name));
    let mut message = message.to_owned();
    let subcommand = texts.iter().find_map(|text| command.find_subcommand(text));
    for arg in subcommand.iter().flat_map(|command| command.get_arguments()) {
        let Some(first) = first_name(arg) else { continue };
        let alias = other_names(arg).find(|name| is_typed(name));
        if let Some(alias) = alias.filter(|_| !is_typed(&first)) {
            message = replaced(&message, &first, &alias);
        }
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

/// Every other name of an option.
fn other_names(arg: &Arg) -> impl Iterator<Item = String> {
    let long = arg.get_all_aliases().unwrap_or_default().into_iter().map(|name| format!("--{name}"));
    let short = arg.get_short().filter(|_| arg.get_long().is_some());
    long.chain(short.map(|letter| format!("-{letter}")))
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
    use crate::Cli;
    use clap::CommandFactory;

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
                for typed in other_names(arg).chain([first.clone()]) {
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
        assert!(renamed >= 16, "{renamed}");
    }

    #[test]
    fn the_preset_has_the_name_that_was_typed() {
        let of = |text: &str| {
            let arguments: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            as_typed("--preset=documented: must be default", &Cli::command(), &arguments)
        };
        assert_eq!(of("flowline train moons --preset diffrax"), "--preset=diffrax: must be default");
        assert_eq!(of("flowline train moons --preset=documented"), "--preset=documented: must be default");
        assert_eq!(of("flowline train moons --preset documented"), "--preset=documented: must be default");
    }
}
