//! The state of an application in words.

use domain::Timestamp;
use domain::limits::{APPLICATION_RESTORABLE_MS, DAY_MS, UNUSED_APPLICATION_MS, UNUSED_WARNING_DAYS};
use service::application_life::ApplicationLife;
use web::pages::{Lang, Moment};

/// The state of an application on a page.
#[derive(Debug)]
pub(crate) struct AppState {
    /// The kind of the badge.
    pub kind: &'static str,
    /// The badge.
    pub text: String,
    /// What there is to know about it, and by when.
    pub about: Option<(&'static str, Moment)>,
}

impl AppState {
    pub(crate) fn of(life: &ApplicationLife, now: Timestamp, lang: Lang) -> Self {
        let state = |kind, text: &str, about| Self { kind, text: text.to_owned(), about };
        if let Some(deleted_at) = life.deleted_at {
            let gone = Moment::of(deleted_at.plus_ms(APPLICATION_RESTORABLE_MS), now, lang);
            let about = match life.is_deleted_by_owner {
                true => lang.pick("완전히 삭제되는 날", "Gone for good"),
                false => lang.pick(
                    "90일 동안 쓰지 않아 삭제됨. 완전히 삭제되는 날",
                    "Unused for 90 days. Gone for good",
                ),
            };
            return state("bad", lang.pick("삭제됨", "Deleted"), Some((about, gone)));
        }
        if life.is_disabled_by_operator {
            return state("bad", lang.pick("운영자가 사용 중지", "Disabled by the operator"), None);
        }
        if life.is_disabled_by_owner {
            return state("warn", lang.pick("사용 중지", "Disabled"), None);
        }
        let idle_ms = now.as_millis() - life.last_used_at.as_millis();
        if idle_ms < UNUSED_WARNING_DAYS[0] * DAY_MS {
            return state("good", lang.pick("사용 중", "Active"), None);
        }
        let left = ((UNUSED_APPLICATION_MS - idle_ms).max(0) + DAY_MS - 1) / DAY_MS;
        let text = match lang {
            Lang::Ko => format!("{left}일 뒤 삭제"),
            Lang::En if left == 1 => "Deleted in 1 day".to_owned(),
            Lang::En => format!("Deleted in {left} days"),
        };
        let deleted = Moment::of(life.last_used_at.plus_ms(UNUSED_APPLICATION_MS), now, lang);
        let about = lang.pick("쓰지 않으면 삭제되는 날", "Will be deleted for inactivity on");
        Self { kind: "warn", text, about: Some((about, deleted)) }
    }
}
