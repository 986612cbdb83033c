//! The address of the server: the first line of `stagedoor dev --json`.

use serde_json::Value;

use crate::http::Origin;

/// The parts of the line that the load needs. It has no `Debug`, because it contains a secret. The load
/// creates its own people and applications.
pub(crate) struct World {
    /// The address of REST and sockets.
    pub(crate) base: Origin,
    /// The address of the sign-in.
    pub(crate) auth: Origin,
    /// The address of the platform API.
    pub(crate) platform: Origin,
    pub(crate) operator_key: String,
}

impl World {
    /// Parses the first line of `text`.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let line = text.lines().next().unwrap_or_default();
        let world: Value = serde_json::from_str(line)
            .map_err(|_| "the world is not a line of JSON, as `stagedoor dev --json` prints it".to_owned())?;
        let text = |name: &str| {
            let value = world.get(name).and_then(Value::as_str);
            value.ok_or_else(|| format!("the world has no {name}"))
        };
        let origin = |name: &str| {
            let (origin, _) = Origin::split(text(name)?).map_err(|problem| format!("{name}: {problem}"))?;
            Ok::<_, String>(origin)
        };
        Ok(Self {
            base: origin("baseUrl")?,
            auth: origin("authUrl")?,
            platform: origin("platformUrl")?,
            operator_key: text("operatorKey")?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_has_the_addresses() {
        let line = r#"{"baseUrl":"http://127.0.0.1:1","authUrl":"http://127.0.0.1:2","platformUrl":"http://127.0.0.1:3","operatorKey":"k"}"#;
        let world = World::read(&format!("{line}\nmore")).map_err(drop).unwrap();
        assert_eq!((world.base.host.as_str(), world.operator_key.as_str()), ("127.0.0.1:1", "k"));
        assert_eq!((world.auth.address.port(), world.platform.address.port()), (2, 3));
        let problem = |text: &str| World::read(text).err().unwrap();
        assert!(problem("").contains("JSON"));
        assert!(problem(&line.replace("authUrl", "x")).contains("no authUrl"));
        assert!(problem(&line.replace("http://127.0.0.1:3", "https://h")).starts_with("platformUrl:"));
    }
}
