//! `--config FILE`: reads a TOML file of options and inserts them before the options on the command line.

use super::error::{CliError, Result};
use clap::ArgMatches;
use clap::parser::ValueSource;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The arguments with the options of the config file inserted first, or `None` without `--config`. Options on the command
/// line take precedence.
///
/// # Errors
/// A file that cannot be read or is not a flat table.
pub fn arguments(
    command: &clap::Command,
    matches: &ArgMatches,
    arguments: &[OsString],
) -> Result<Option<Vec<OsString>>> {
    let Some((name, given)) = matches.subcommand().filter(|(name, _)| *name == "train") else {
        return Ok(None);
    };
    let Some(path) = given.get_one::<PathBuf>("config") else { return Ok(None) };
    let command = command.find_subcommand(name).expect("invariant: it was matched");
    let from_file = options(path)?.into_iter().filter(|(key, _)| !is_given(command, given, key));
    let from_file: Vec<OsString> = from_file.flat_map(|(_, arguments)| arguments).collect();
    let at = arguments.iter().position(|argument| argument == name).map_or(arguments.len(), |at| at + 1);
    let (before, after) = arguments.split_at(at);
    Ok(Some([before, &from_file, after].concat()))
}

/// Whether the command line sets an option.
fn is_given(command: &clap::Command, given: &ArgMatches, key: &str) -> bool {
    let is_called = |arg: &&clap::Arg| arg.get_id() == key || arg.get_long() == Some(key);
    let arg = command.get_arguments().find(is_called);
    arg.is_some_and(|arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine))
}

/// The options of a file, each with its arguments.
fn options(path: &Path) -> Result<Vec<(String, Vec<OsString>)>> {
    let refused = |reason: String| CliError::Config { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path)
        .map_err(|source| flowline::io::IoError::Read { path: path.to_owned(), source })?;
    let table: serde_json::Map<String, Value> =
        basic_toml::from_str(&text).map_err(|e| refused(e.to_string()))?;
    let argument = |(key, value): (String, Value)| {
        let key = key.replace('_', "-");
        let flag = OsString::from(format!("--{key}"));
        let arguments = match value {
            Value::Bool(true) => vec![flag],
            Value::Bool(false) => vec![],
            Value::String(text) if key == "data" => vec![text.into()],
            Value::String(text) => vec![format!("--{key}={text}").into()],
            Value::Number(number) => vec![format!("--{key}={number}").into()],
            _ => return Err(refused(format!("{key} is not a string, a number, true or false"))),
        };
        Ok((key, arguments))
    };
    table.into_iter().map(argument).collect()
}
