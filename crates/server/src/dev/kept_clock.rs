//! The clock of a kept world, in a file beside its database. It never goes back over a restart, also after a
//! kill: the file is written before a move, and for a fast clock it is written ahead.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use sandbox::{ClockKeeper, Sandbox};
use serde::{Deserialize, Serialize};
use service::{Clock, ClockMode};

use super::snapshot::ClockState;

/// How often the time of a fast or slow clock is kept.
const KEEP_EVERY: Duration = Duration::from_secs(2);
/// How far ahead of a fast clock its file is, in milliseconds of real time.
const AHEAD_MS: f64 = 5_000.0;

/// The file of a clock.
#[derive(Clone, Debug)]
pub(super) struct KeptClock(Arc<PathBuf>);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    clock: ClockState,
    /// The system's time at which it was written, in milliseconds since 1970.
    written_ms: i64,
}

impl KeptClock {
    /// The clock of the world in `folder`.
    pub fn of(folder: &Path) -> Self {
        Self(Arc::new(folder.join("clock.json")))
    }

    /// How the clock goes on: as if it had run on meanwhile, but at most as fast as real time. `None` if it
    /// was never kept.
    ///
    /// # Errors
    /// A sentence: the file cannot be read.
    pub fn read(&self) -> Result<Option<ClockState>, String> {
        let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", self.0.display());
        let bytes = match std::fs::read(&*self.0) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(problem(&error)),
        };
        let kept: Kept = serde_json::from_slice(&bytes).map_err(|error| problem(&error))?;
        Ok(Some(kept.now(Clock::system().now())))
    }

    /// Keeps the clock of a sandbox from now on.
    pub fn follow(&self, sandbox: &Sandbox) {
        let this = self.clone();
        let keep = move |time, mode| this.write(ahead(time, mode), mode);
        sandbox.keep_clock_with(ClockKeeper(Box::new(keep)));
        let sandbox = sandbox.clone();
        tokio::spawn(async move {
            let timer = Clock::system();
            let has_ended = sandbox.log().clone();
            loop {
                tokio::select! {
                    () = timer.sleep(KEEP_EVERY) => {}
                    () = has_ended.ended() => return,
                }
                if matches!(sandbox.clock().mode(), ClockMode::Scaled(_)) {
                    sandbox.keep_clock(sandbox.clock().now());
                }
            }
        });
    }

    /// Keeps the clock of a sandbox that ends.
    pub fn end(&self, sandbox: &Sandbox) {
        self.write(sandbox.clock().now(), sandbox.clock().mode());
    }

    fn write(&self, time: Timestamp, mode: ClockMode) {
        let kept = Kept { clock: ClockState::at(time, mode), written_ms: Clock::system().now().as_millis() };
        if let Err(error) = self.replace(&kept) {
            tracing::warn!(%error, path = %self.0.display(), "failed to keep the clock of the world");
        }
    }

    /// Writes a new file and moves it into place.
    fn replace(&self, kept: &Kept) -> std::io::Result<()> {
        let temporary = self.0.with_extension("json.new");
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&serde_json::to_vec(kept)?)?;
        std::fs::rename(&temporary, &*self.0)
    }
}

/// A time that a fast clock does not pass before it is kept again. Any other clock is kept as it is: its time
/// after a kill follows from the system's clock.
fn ahead(time: Timestamp, mode: ClockMode) -> Timestamp {
    match mode {
        ClockMode::Scaled(_) => time.plus_ms((AHEAD_MS * mode.rate()) as i64),
        ClockMode::Real | ClockMode::Frozen => time,
    }
}

impl Kept {
    fn now(&self, system: Timestamp) -> ClockState {
        let away_ms = system.as_millis().saturating_sub(self.written_ms).max(0);
        let passed_ms = (away_ms as f64 * self.clock.rate.min(1.0)) as i64;
        let now = Timestamp::from_millis(self.clock.now_ms).plus_ms(passed_ms);
        ClockState { now_ms: now.as_millis(), ..self.clock }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_kept_clock_runs_on_at_most_as_fast_as_real_time() {
        for (mode, expected) in [
            (ClockMode::Frozen, 5_000_000),
            (ClockMode::Real, 5_060_000),
            (ClockMode::Scaled(1_000.0), 5_060_000),
            (ClockMode::Scaled(0.5), 5_030_000),
        ] {
            let kept = Kept { clock: ClockState::at(at(5_000_000), mode), written_ms: 100_000 };
            assert_eq!(kept.now(at(160_000)).now_ms, expected, "{mode:?}");
            // The system's clock went back.
            assert_eq!(kept.now(at(50_000)).now_ms, 5_000_000, "{mode:?}");
        }
    }

    #[test]
    fn the_file_is_read_as_it_was_written() {
        let root = tempfile::tempdir().expect("a folder");
        let kept = KeptClock::of(root.path());
        assert_eq!(kept.read(), Ok(None));
        kept.write(at(99), ClockMode::Frozen);
        assert_eq!(kept.read(), Ok(Some(ClockState::at(at(99), ClockMode::Frozen))));
        std::fs::write(root.path().join("clock.json"), "{").expect("written");
        assert!(kept.read().is_err());
    }
}
