//! World files: a world as text. `stagedoor dev` seeds its database from one, `stagedoor world export` writes
//! one.

mod check;
mod convert;
mod export;
mod history;
mod load;
mod mistake;
mod model;
mod position;
mod text;

pub use export::KnownSecrets;
pub use mistake::WorldFileError;
pub use model::{ApplicationItem, PASSWORD, PersonItem, TokenPair, WorldFile};
pub use position::position;
