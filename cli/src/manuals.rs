//! `flowline completions` and `flowline man`: completion scripts and man pages, generated from the options.

use super::Cli;
use super::error::{CliError, Result};
use super::say::{check, done};
use clap::CommandFactory;
use flowline::io::IoError;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `flowline completions`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  source <(flowline completions bash)
  flowline completions fish > ~/.config/fish/completions/flowline.fish")]
pub struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh
    #[arg(hide_possible_values = true)]
    shell: clap_complete::Shell,
}

/// Arguments of `flowline man`.
#[derive(clap::Args)]
#[command(after_help = "Example: flowline man --out ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Folder for flowline.1 and a page per command [default: .]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints a completion script.
pub fn completions(args: &CompletionsArgs) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "flowline", &mut script);
    check(std::io::stdout().lock().write_all(&script));
}

/// Writes the man pages.
///
/// # Errors
/// A folder that cannot be written.
pub fn man(args: &ManArgs) -> Result<()> {
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("."));
    let refused = |source| CliError::from(IoError::Write { path: folder.clone(), source });
    std::fs::create_dir_all(&folder).map_err(refused)?;
    clap_mangen::generate_to(Cli::command(), &folder).map_err(refused)?;
    let text = format!("man pages in {}", folder.display());
    done(&text, || serde_json::json!({"folder": folder}));
    Ok(())
}
