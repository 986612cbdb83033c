//! A sample request, as the tables write it.

/// A sample request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The id of the operation.
    pub id: &'static str,
    /// The values of the path's parameters, in their order.
    pub path: &'static [&'static str],
    pub query: &'static [(&'static str, &'static str)],
    pub body: &'static str,
    /// Values of the answer that stand for words in later samples: where each is, and the word.
    pub kept: &'static [(&'static str, &'static str)],
}

impl Sample {
    pub const fn of(id: &'static str) -> Self {
        Self { id, path: &[], query: &[], body: "", kept: &[] }
    }

    pub const fn path(self, path: &'static [&'static str]) -> Self {
        Self { path, ..self }
    }

    pub const fn query(self, query: &'static [(&'static str, &'static str)]) -> Self {
        Self { query, ..self }
    }

    pub const fn body(self, body: &'static str) -> Self {
        Self { body, ..self }
    }

    pub const fn keep(self, kept: &'static [(&'static str, &'static str)]) -> Self {
        Self { kept, ..self }
    }
}
