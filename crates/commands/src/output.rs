//! What commands print. The reader may go away at any time, as `head` does: the command then goes on without
//! it, so that its work and its exit code stay what they are. `println!` would panic.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints text to stdout.
#[macro_export]
macro_rules! out_text {
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*)) };
}

/// Prints a line to stdout.
#[macro_export]
macro_rules! out_line {
    ($($text:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints a line to stderr.
#[macro_export]
macro_rules! err_line {
    ($($text:tt)*) => { $crate::output::report(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints to stdout. A file that cannot take the text ends the program: it would be incomplete.
pub fn print(text: Arguments<'_>) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_fmt(text).and_then(|()| stdout.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        report(format_args!("stagedoor: cannot write to stdout: {error}\n"));
        std::process::exit(1);
    }
}

/// Prints to stderr. There is no other place to say that this failed.
pub fn report(text: Arguments<'_>) {
    let _ = std::io::stderr().write_fmt(text);
}
