//! Short and long help, and usage errors in at most three lines.

use super::say::{error_line, failed, is_colored};
use super::{Cli, train};
use clap::{ColorChoice, CommandFactory};
use std::ffi::OsString;
use std::process::ExitCode;

/// Text below the help of the program.
pub const TOP: &str = "\
RUN is the folder that `train` wrote, or `latest` for the newest run in runs/.
Exit codes: 0 success, 1 failure, 2 wrong usage.

Examples:
  flowline train                      train on the built-in image
  flowline train points.csv --quick   train on a table for 15 seconds
  flowline sample latest -o x.csv     draw samples from the newest run
  flowline help train                 print the help of a command";

/// Text below the short help of `train`.
const SHORT: &str = "\
More options (model, objective, solver, optimizer): flowline train --help
Example: flowline train cat.png --time-limit 10m";

/// The last line of a usage error.
const MORE: &str = "For more information, try '--help'.";

/// The clap command. For `-h`, the advanced options of `train` are hidden.
pub fn command(arguments: &[OsString], color: ColorChoice) -> clap::Command {
    let command = Cli::command().color(color);
    let command = command.mut_subcommand("train", |train| {
        train.mut_args(|arg| {
            let is_advanced =
                arg.get_help_heading().is_some_and(|heading| train::ADVANCED.contains(&heading));
            if is_short(arguments) && is_advanced { arg.hide(true) } else { arg }
        })
    });
    // clap has a short and a long help of its own, but its long help takes three lines per option.
    if is_short(arguments) {
        command.mut_subcommand("train", |train| train.after_help(SHORT))
    } else {
        command
    }
}

fn is_short(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "-h")
}

/// Prints a usage error in at most three lines, or the requested help or version.
pub fn refuse(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    match error.kind() {
        DisplayHelp | DisplayVersion => {
            // Printing fails if the pipe is closed, which is not a failure of the command.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        DisplayHelpOnMissingArgumentOrSubcommand => {
            let text = "no command given; use train, sample, density, plot, log-prob, info or runs";
            error_line(&format!("error: {text}"));
            error_line(MORE);
            failed(text, Some(2));
        }
        _ => {
            let text = error.render();
            error_line(&shortened(&if is_colored() { text.ansi().to_string() } else { text.to_string() }));
            let text = shortened(&text.to_string());
            let lines = text.lines().filter(|line| *line != MORE).collect::<Vec<_>>().join("; ");
            failed(lines.strip_prefix("error: ").unwrap_or(&lines), Some(2));
        }
    }
    ExitCode::from(2)
}

/// The first two paragraphs of a clap message as one line each, and where to find help.
fn shortened(message: &str) -> String {
    let paragraphs = message.split("\n\n").map(|paragraph| {
        let lines: Vec<&str> = paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.join(" ")
    });
    let is_wanted = |line: &String| !line.is_empty() && !plain(line).starts_with("For more information");
    // clap's tip on how to pass a value that starts with a dash is never the remedy here.
    let is_helpful = |line: &String| !plain(line).starts_with("tip: to pass");
    let mut lines: Vec<String> = paragraphs.filter(is_wanted).filter(is_helpful).take(2).collect();
    lines.push(MORE.to_owned());
    let numbers = [
        ("invalid digit found in string", "give a whole number"),
        ("invalid float literal", "give a number"),
        ("number too large to fit in target type", "give a smaller number"),
    ];
    numbers.iter().fold(lines.join("\n"), |text, (theirs, ours)| text.replace(theirs, ours))
}

/// A text without its colors.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_colors_and_are_short() {
        let message =
            "\x1b[31merror:\x1b[0m a\n  b\n\n  \x1b[32mtip:\x1b[0m to pass 'x'\n\nUsage: f\n\nFor more\n";
        assert_eq!(plain("\x1b[1m\x1b[31merror:\x1b[0m a"), "error: a");
        let short = shortened(message);
        assert!(short.starts_with("\x1b[31merror:\x1b[0m a b\nUsage: f\n"), "{short:?}");
    }

    #[test]
    fn the_command_is_consistent() {
        command(&[], ColorChoice::Never).debug_assert();
    }
}
