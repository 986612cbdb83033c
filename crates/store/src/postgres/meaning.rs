//! The sentences for errors of the server that an operator has to mend.

use tokio_postgres::error::{DbError, SqlState};

use crate::StoreError;

/// The function of the server that looks for the role of a connection.
const LOOKS_FOR_ROLE: &str = "InitializeSessionUserId";
/// The function of the server that refuses a proof of identity.
const REFUSES_PROOF: &str = "auth_failed";
/// The function of the server that looks at the database of a connection.
const LOOKS_AT_DATABASE: &str = "CheckMyDatabase";
/// The function of the server that refuses BEGIN READ WRITE on a standby.
const REFUSES_MODE: &str = "call_bool_check_hook";

/// What the server says of an error.
#[derive(Clone, Copy)]
struct Said<'a> {
    code: &'a SqlState,
    /// The server's function, because a code has several causes and the message is in the server's language.
    routine: &'a str,
    message: &'a str,
}

impl<'a> From<&'a DbError> for Said<'a> {
    fn from(error: &'a DbError) -> Self {
        Self { code: error.code(), routine: error.routine().unwrap_or_default(), message: error.message() }
    }
}

/// The error of a server that cannot be used now: a lost connection, a refused one, a lack of resources, an
/// operator's intervention, or a failure of the server itself. `None` for other errors.
pub(super) fn outage(error: &DbError) -> Option<StoreError> {
    of_outage(error.into())
}

/// The error of a connection or a schema that is prepared, without a statement of a request. So no parameter
/// was sent.
pub(super) fn preparation(error: &DbError) -> StoreError {
    StoreError::Open(of_preparation(error.into()))
}

/// The error of a statement of a request. The message of a missing right quotes names at the most.
pub(super) fn statement(error: &DbError, sql: &'static str) -> StoreError {
    of_statement(error.into(), sql)
}

/// What went wrong with the schema, and what to do.
pub(super) fn schema_words(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| of_preparation(error.into()))
}

/// The error of damaged data. Such a message quotes names and numbers of blocks.
pub(super) fn corrupt(error: &DbError) -> StoreError {
    of_corrupt(error.into())
}

fn of_corrupt(said: Said<'_>) -> StoreError {
    StoreError::Corrupt(format!(
        "SQLSTATE {}: {}: pg_amcheck says what is damaged, and REINDEX makes an index again",
        said.code.code(),
        said.message
    ))
}

fn of_outage(said: Said<'_>) -> Option<StoreError> {
    let text = |remedy: &str| format!("SQLSTATE {}{remedy}", said.code.code());
    let class = said.code.code().get(..2).unwrap_or_default();
    Some(match *said.code {
        SqlState::INVALID_PASSWORD => {
            StoreError::Refused(text(": the server refuses the user or the password"))
        }
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION => StoreError::Refused(text(match said.routine {
            LOOKS_FOR_ROLE => {
                ": the role of the URL does not exist on the server, or may not sign in: CREATE ROLE … LOGIN"
            }
            REFUSES_PROOF => {
                ": the server does not accept the proof that its pg_hba.conf wants of this user (peer, ident or cert): \
                 use the user that the proof names, or another method there"
            }
            _ => {
                ": the server's pg_hba.conf has no line for this user, host and database, or its line wants TLS or a \
                 client certificate (sslmode, sslcert and sslkey in the URL)"
            }
        })),
        SqlState::INVALID_CATALOG_NAME => {
            StoreError::Refused(text(": the database does not exist: make it with createdb, in UTF8"))
        }
        SqlState::INSUFFICIENT_PRIVILEGE if said.routine == LOOKS_AT_DATABASE => StoreError::Refused(text(
            ": the user may not connect to the database: GRANT CONNECT ON DATABASE … TO …",
        )),
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE if said.routine == LOOKS_AT_DATABASE => {
            StoreError::Refused(text(
                ": the database takes no connections: ALTER DATABASE … ALLOW_CONNECTIONS true",
            ))
        }
        SqlState::TOO_MANY_CONNECTIONS => StoreError::Unavailable(text(
            ": all connections that the server, the database or the role may have are used: raise max_connections, or \
             the CONNECTION LIMIT",
        )),
        SqlState::CANNOT_CONNECT_NOW => StoreError::Unavailable(text(": the server is starting or stopping")),
        _ if matches!(class, "28" | "3D") => StoreError::Refused(text("")),
        _ if matches!(class, "08" | "53" | "57" | "58") => StoreError::Unavailable(text("")),
        _ => return None,
    })
}

fn of_statement(said: Said<'_>, sql: &'static str) -> StoreError {
    let code = said.code.code();
    match *said.code {
        SqlState::INSUFFICIENT_PRIVILEGE => StoreError::Refused(missing_right(said)),
        SqlState::FEATURE_NOT_SUPPORTED if said.routine == REFUSES_MODE => {
            StoreError::Refused(takes_no_writes(code))
        }
        _ => StoreError::Statement { code: code.to_owned(), message: String::new(), sql },
    }
}

/// The right to change a table belongs to its owner, and cannot be granted. The server has one code and one
/// function for both.
fn missing_right(said: Said<'_>) -> String {
    if said.message.contains("must be owner") {
        return format!(
            "SQLSTATE {}: {}, and the user is another role. Give all tables of the schema to the user: ALTER TABLE … OWNER \
             TO …",
            said.code.code(),
            said.message
        );
    }
    format!(
        "SQLSTATE {}: the user lacks a right ({}). It needs all rights on the schema and on its tables: GRANT CREATE, \
         USAGE ON SCHEMA … TO …, and GRANT ALL ON ALL TABLES IN SCHEMA … TO …. Since PostgreSQL 15 only the owner of a \
         database may make tables in `public`: ALTER DATABASE … OWNER TO …",
        said.code.code(),
        said.message
    )
}

fn takes_no_writes(code: &str) -> String {
    format!(
        "SQLSTATE {code}: the server takes no writes: it is a standby, or default_transaction_read_only is on. Name the \
         primary in the URL"
    )
}

fn of_preparation(said: Said<'_>) -> String {
    let code = said.code.code();
    match *said.code {
        SqlState::INSUFFICIENT_PRIVILEGE => missing_right(said),
        SqlState::INVALID_SCHEMA_NAME => format!(
            "SQLSTATE {code}: no schema of the search_path exists, or the user may not use it: CREATE SCHEMA … AUTHORIZATION …, with the name that the \
             URL or the role has in its search_path"
        ),
        SqlState::DUPLICATE_TABLE | SqlState::DUPLICATE_OBJECT | SqlState::DUPLICATE_FUNCTION => format!(
            "SQLSTATE {code}: {}, of another program: use an empty database, or an empty schema in the search_path",
            said.message
        ),
        SqlState::READ_ONLY_SQL_TRANSACTION => takes_no_writes(code),
        // Such a message quotes names at the most.
        _ if code.starts_with("42") || code.starts_with("0A") => format!("SQLSTATE {code}: {}", said.message),
        _ => format!("SQLSTATE {code}: the log of the server has the details"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said<'a>(code: &'a SqlState, routine: &'a str) -> Said<'a> {
        Said { code, routine, message: "said" }
    }

    #[test]
    fn a_code_with_several_causes_is_told_by_the_function() {
        for (routine, word) in [
            (LOOKS_FOR_ROLE, "CREATE ROLE"),
            (REFUSES_PROOF, "peer"),
            ("ClientAuthentication", "no line for"),
        ] {
            let code = SqlState::INVALID_AUTHORIZATION_SPECIFICATION;
            let Some(StoreError::Refused(text)) = of_outage(said(&code, routine)) else {
                panic!("{routine}")
            };
            assert!(text.starts_with("SQLSTATE 28000: ") && text.contains(word), "{text}");
        }
        let denied = SqlState::INSUFFICIENT_PRIVILEGE;
        assert!(matches!(of_outage(said(&denied, LOOKS_AT_DATABASE)), Some(StoreError::Refused(_))));
        assert_eq!(of_outage(said(&denied, "aclcheck_error")), None);
    }

    #[test]
    fn only_what_passes_by_itself_is_an_unavailable_server() {
        for (code, passes) in [
            (SqlState::CANNOT_CONNECT_NOW, true),
            (SqlState::TOO_MANY_CONNECTIONS, true),
            (SqlState::ADMIN_SHUTDOWN, true),
            (SqlState::CONNECTION_FAILURE, true),
            (SqlState::INVALID_PASSWORD, false),
            (SqlState::INVALID_CATALOG_NAME, false),
        ] {
            let outage = of_outage(said(&code, "")).expect("an outage");
            assert_eq!(outage.may_pass(), passes, "{outage}");
            assert!(outage.is_outage(), "{outage}");
        }
    }

    #[test]
    fn a_statement_that_the_server_does_not_allow_names_its_remedy() {
        for (code, routine, word) in [
            (SqlState::INSUFFICIENT_PRIVILEGE, "aclcheck_error", "(said). It needs all rights"),
            (SqlState::FEATURE_NOT_SUPPORTED, REFUSES_MODE, "Name the primary"),
        ] {
            let error = of_statement(said(&code, routine), "SELECT 1");
            let text = error.to_string();
            assert!(error.is_outage() && !error.may_pass() && text.contains(word), "{text}");
        }
        let code = SqlState::INSUFFICIENT_PRIVILEGE;
        let foreign = Said { message: "must be owner of table people", ..said(&code, "aclcheck_error") };
        for text in [of_statement(foreign, "SELECT 1").to_string(), of_preparation(foreign)] {
            assert!(
                text.contains("people") && text.contains("OWNER TO") && !text.contains("GRANT"),
                "{text}"
            );
        }
        let other = of_statement(said(&SqlState::UNDEFINED_TABLE, ""), "SELECT 1");
        assert_eq!(other.to_string(), "42P01 in: SELECT 1");
    }

    #[test]
    fn an_error_of_the_schema_names_its_remedy_and_no_value() {
        for (code, word) in [
            (SqlState::INSUFFICIENT_PRIVILEGE, "GRANT CREATE"),
            (SqlState::INVALID_SCHEMA_NAME, "CREATE SCHEMA"),
            (SqlState::DUPLICATE_TABLE, "empty database"),
            (SqlState::READ_ONLY_SQL_TRANSACTION, "standby"),
            (SqlState::UNDEFINED_TABLE, "said"),
            (SqlState::INVALID_TEXT_REPRESENTATION, "log of the server"),
        ] {
            let text = of_preparation(said(&code, ""));
            assert!(text.contains(code.code()) && text.contains(word), "{text}");
        }
        assert!(!of_preparation(said(&SqlState::INVALID_TEXT_REPRESENTATION, "")).contains("said"));
    }
}
