//! World files: a world as text. `stagedoor dev` seeds its database from one, `stagedoor world export` writes
//! one.

mod check;
mod export;
mod load;
mod model;
mod position;
mod text;

pub use check::WorldFileError;
pub use export::KnownSecrets;
pub use model::{ApplicationItem, PASSWORD, PersonItem, TokenPair, WorldFile};
