//! Reads and writes world files.

use super::mistake::WorldFileError;
use super::model::WorldFile;

/// The world without a world file.
const DEFAULT_WORLD: &str = include_str!("default.yaml");

impl WorldFile {
    /// The world without a world file.
    ///
    /// # Errors
    /// None: a test reads it.
    pub fn of_default() -> Result<Self, WorldFileError> {
        Self::parse(DEFAULT_WORLD)
    }

    /// Reads and checks a world file in YAML, or in JSON, which is YAML too.
    ///
    /// # Errors
    /// The first mistake, with its line and column.
    pub fn parse(text: &str) -> Result<Self, WorldFileError> {
        // An empty document would be a world without anything.
        let is_empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
        if text.lines().all(is_empty) {
            let rule = "the file is empty: `stagedoor world export` writes one".to_owned();
            return Err(WorldFileError { path: String::new(), rule, position: None });
        }
        let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
        let file: Self = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| WorldFileError::unreadable(&error))?;
        file.check().map_err(|error| error.located_in(text))?;
        Ok(file)
    }

    /// The file as YAML.
    ///
    /// # Errors
    /// None: the file consists of texts, numbers and lists.
    pub fn to_yaml(&self) -> Result<String, String> {
        serde_saphyr::to_string(self).map_err(|error| error.to_string())
    }

    /// The JSON Schema of world files.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

#[cfg(test)]
mod tests;
