//! `lode completions` and `lode man`: made from the command line's definition,
//! so that they know every verb and flag.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::Done;
use crate::failure::Failure;

/// The command line of `lode completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  lode completions bash > ~/.local/share/bash-completion/completions/lode
  lode completions zsh > ~/.zfunc/_lode
  lode completions fish > ~/.config/fish/completions/lode.fish")]
pub struct Completions {
    /// The shell that is to complete
    shell: Shell,
}

/// The command line of `lode man`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  lode man ~/.local/share/man/man1 && man lode-bench")]
pub struct Man {
    /// Where the pages go, one for each verb; made if it is not there
    directory: PathBuf,
}

/// Prints the script for a shell.
pub fn completions(completions: &Completions, mut command: Command) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut command, "lode", &mut script);
    io::stdout().lock().write_all(&script).map_err(Failure::output)
}

/// Writes a page for `lode` and for each of its verbs.
pub fn man(man: &Man, command: Command) -> Done {
    let directory = &man.directory;
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory))
        .map_err(Failure::io(directory))
}
