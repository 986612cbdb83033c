//! The options of commands about a user of an application.

use clap::Args;
use serde_json::{Map, Value};

use crate::target::TargetOptions;

/// The sandbox, and which user of which application.
#[derive(Debug, Args)]
pub struct UserOptions {
    #[command(flatten)]
    pub(crate) target: TargetOptions,

    /// The user, by id, login or channel name. Default: the first person.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// The application, by id or name. Default: the oldest one.
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
}

impl UserOptions {
    /// The body of the calls of the sandbox that take a user and an application.
    pub(crate) fn body(&self) -> Value {
        let given = [("user", &self.user), ("client", &self.client)];
        let fields =
            given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into())));
        Value::Object(fields.collect::<Map<_, _>>())
    }
}
