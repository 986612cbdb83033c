//! `stagedoor`: see `stagedoor --help`.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// The system's allocator does not return the memory of closed sessions
/// (`docs/adr/0011-memory-is-given-back.md`).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    server::entry::main()
}
