//! `stagedoor completions` and `stagedoor manual`: what packages install beside the program.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use commands::CommandFailure;

/// The end of the help of `stagedoor completions`.
pub(super) const COMPLETIONS_HELP: &str = "\
Examples:
  stagedoor completions bash > ~/.local/share/bash-completion/completions/stagedoor
  stagedoor completions zsh > ~/.zfunc/_stagedoor                     with ~/.zfunc in $fpath
  stagedoor completions fish > ~/.config/fish/completions/stagedoor.fish

A package of Stagedoor has them installed already.";

/// The end of the help of `stagedoor manual`.
pub(super) const MANUAL_HELP: &str = "\
Examples:
  stagedoor manual ~/.local/share/man/man1
  man stagedoor-serve

A page has the text of the command's --help. A package of Stagedoor has the pages installed already.

Exit codes: 0 written, 1 a page could not be written, 2 wrong use.";

/// The heading above the end of a help, as the library writes it.
const EXTRA: &str = "\n.SH EXTRA\n";
/// The heading of ours. The lines below it stay as they are, because they are examples.
const NOTES: &str = "\n.SH NOTES\n.nf\n";

/// `stagedoor completions`
#[derive(Debug, Args)]
pub struct CompletionsOptions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// `stagedoor manual`
#[derive(Debug, Args)]
pub struct ManualOptions {
    /// The folder for the pages. It is created if it does not exist.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// The script that completes the words of a program in a shell.
#[must_use]
pub fn completions(options: &CompletionsOptions, mut program: Command) -> String {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut program, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Writes a manual page for each command of a program: `stagedoor.1`, `stagedoor-serve.1` and so on.
///
/// # Errors
/// [`CommandFailure`] when a page cannot be written.
pub fn write_manual(options: &ManualOptions, program: Command) -> Result<(), CommandFailure> {
    write_pages(&options.folder, program)
        .map_err(|error| CommandFailure::Failed(format!("{}: {error}", options.folder.display())))
}

fn write_pages(folder: &Path, program: Command) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut program = program.disable_help_subcommand(true);
    // Gives each command its name with those of its parents.
    program.build();
    write_page(&program, folder)
}

/// Writes the page of a command, and those of the commands below it.
fn write_page(command: &Command, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_page(below, folder)?;
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = String::from_utf8_lossy(&text).replace(EXTRA, NOTES);
    fs::write(folder.join(page.get_filename()), text)
}
