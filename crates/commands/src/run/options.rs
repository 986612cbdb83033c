//! The options of `stagedoor run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::hosts_file::fixed_host;
use crate::target::TargetOptions;

/// The end of the command's help.
pub const HELP: &str = "\
Examples:
  stagedoor run -- python bot.py
  stagedoor run --host api.example,auth.example -- node bot.js
  stagedoor run --host api.example --offline -- npm test

The command has the variables that `stagedoor env` prints, with the prefix STAGEDOOR_, and variables that make it
trust the certificate of the sandbox. The roads to the fixed hosts, the first that this machine allows:
  namespace    the command alone has another hosts file (Linux)
  hosts-file   the hosts file of the machine, until the command ends (root in a container)
  proxy        HTTPS_PROXY: only for programs that follow it
The exit code is that of the command; 128 and the number of the signal that ended it; 126 or 127 if it cannot be
started; 2 for wrong use; 3 if no sandbox was reached.";

/// `stagedoor run`
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The sandbox that runs.
    #[command(flatten)]
    pub target: TargetOptions,

    /// Starts a new sandbox for this command, with these fixed hosts. Without it, the command uses the
    /// sandbox that runs and its hosts; if none runs, a new one is started.
    #[arg(long, value_name = "HOSTS", value_delimiter = ',', value_parser = fixed_host)]
    pub host: Vec<String>,

    /// The spelling of answers of a new sandbox: documented or observed.
    #[arg(long, value_name = "PROFILE", value_parser = ["documented", "observed"])]
    pub profile: Option<String>,

    /// The folder of the world of a new sandbox. Without it the world is deleted at the end.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// How the command reaches the fixed hosts.
    #[arg(long, value_enum, default_value = "auto")]
    pub road: RoadOption,

    /// The command reaches the sandbox and nothing else: no other host, no other program of this machine.
    /// Needs Linux.
    #[arg(long)]
    pub offline: bool,

    /// The command and its arguments.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `--road`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoadOption {
    /// The first that this machine allows.
    Auto,
    /// A hosts file for the command alone.
    Namespace,
    /// The hosts file of the machine.
    HostsFile,
    /// A proxy.
    Proxy,
    /// The first that leaves the hosts file of the machine alone.
    #[value(skip)]
    Own,
}
