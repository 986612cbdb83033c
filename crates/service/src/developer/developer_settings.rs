//! The settings of the developer center.

/// The settings of the developer center. They are the same on every node of a service.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeveloperSettings {
    /// Whether the operator reviews the scopes that people choose for their applications. The scope of drops
    /// is always reviewed.
    pub reviews_scopes: bool,
}
