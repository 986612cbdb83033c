//! The sentence about whom the end of an application's credentials affects.

use domain::limits::AFFECTED_COUNTED_MAX;
use service::leaked_credentials::Affected;
use web::pages::Lang;

/// A number that is counted up to a limit.
pub(crate) fn counted(count: i64, lang: Lang) -> String {
    match (count < AFFECTED_COUNTED_MAX, lang) {
        (true, _) => count.to_string(),
        (false, Lang::Ko) => format!("{AFFECTED_COUNTED_MAX} 이상"),
        (false, Lang::En) => format!("{AFFECTED_COUNTED_MAX} or more"),
    }
}

/// Says it before a button is pressed.
pub(crate) fn affected_sentence(affected: Affected, lang: Lang) -> String {
    let (users, sessions) = (counted(affected.users, lang), counted(affected.sessions, lang));
    match lang {
        Lang::Ko => format!("지금 토큰이 있는 사람: {users}, 연결된 세션: {sessions}."),
        Lang::En => format!("People with tokens now: {users}. Connected sessions: {sessions}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_counted_up_to_a_limit() {
        let said = affected_sentence(Affected { users: 2, sessions: AFFECTED_COUNTED_MAX }, Lang::En);
        assert_eq!(said, "People with tokens now: 2. Connected sessions: 1000 or more.");
    }
}
