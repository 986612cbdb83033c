//! What an operator sees at a glance.

use store::Tx;
pub use store::queries::overview::{Backlog, NodeListing};

use crate::{Error, Service};

/// Maximum number of nodes in an overview.
const NODES_MAX: i64 = 100;
/// How far an overview counts. More are shown as this many.
pub const COUNTED_MAX: i64 = 1_000;

/// The nodes, and how much waits.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The registered nodes, ordered by name.
    pub nodes: Vec<NodeListing>,
    /// The counts, each up to [`COUNTED_MAX`].
    pub counts: Vec<(Backlog, i64)>,
}

impl Overview {
    /// The count of one kind.
    pub fn count(&self, what: Backlog) -> i64 {
        self.counts.iter().find(|(counted, _)| *counted == what).map_or(0, |(_, count)| *count)
    }
}

impl Service {
    /// The nodes, and how much waits.
    pub async fn overview(&self) -> Result<Overview, Error> {
        self.read(async move |tx: &mut Tx| {
            let nodes = tx.nodes(NODES_MAX).await?;
            let mut counts = Vec::with_capacity(Backlog::ALL.len());
            for what in Backlog::ALL {
                counts.push((what, tx.count_up_to(what, COUNTED_MAX).await?));
            }
            Ok(Overview { nodes, counts })
        })
        .await
    }
}
