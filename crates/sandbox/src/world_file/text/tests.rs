//! Reading, writing and mistakes of world files.

use crate::world_file::TokenPair;

use super::*;

#[test]
fn the_default_world_is_right_and_the_schema_allows_it() {
    let world = WorldFile::of_default().expect("a world file");
    assert_eq!((world.people.len(), world.applications.len()), (8, 2));
    let again = WorldFile::parse(&world.to_yaml().expect("YAML")).expect("a world file");
    assert_eq!(again, world);
    let json = serde_json::to_value(&world).expect("JSON");
    assert_eq!(WorldFile::from_json(json).expect("a world file"), world);
    assert!(WorldFile::schema()["properties"]["people"].is_object());
}

#[test]
fn every_text_survives_being_written_and_read() {
    let names = [
        "007",
        "1e3",
        "0x1f",
        "true",
        "no",
        "null",
        "~",
        "- a",
        "a: b",
        "# x",
        " led",
        "trailed ",
        "two\nlines",
        "'",
        "\"",
        "{a}",
        "[b]",
        "&c",
        "*d",
        "!e",
        "%f",
        "@g",
        "`h",
        "🚀 하늘",
        "2026-01-01",
        ".inf",
        "=",
        "|",
        ">",
        "?",
    ];
    let person = |(number, name): (usize, &&str)| {
        let json =
            serde_json::json!({ "channelId": format!("p{number}"), "channelName": name, "password": name });
        serde_json::from_value(json).expect("a person")
    };
    let people = names.iter().enumerate().map(person).collect();
    let world = WorldFile { people, ..WorldFile::default() };
    assert_eq!(WorldFile::parse(&world.to_yaml().expect("YAML")).expect("a world file"), world);
}

/// A world with one person and one application, and further lines.
fn with(lines: &str) -> String {
    format!(
        "people:\n  - channelId: a\n    channelName: A\n  - channelId: b\n    channelName: B\n\
         applications:\n  - clientId: bot\n    redirectUris: [http://localhost:1/cb]\n{lines}"
    )
}

#[test]
fn a_mistake_is_named_with_its_line_and_column() {
    for (text, expected) in [
        ("people:\n  - channelId: a\n    chanelName: A\n".to_owned(), "line 3, column 5: unknown field"),
        ("people:\n  - channelId: a\n".to_owned(), "missing field"),
        ("people: [\n".to_owned(), "line "),
        ("people: none\n".to_owned(), "line 1, column 9: must be a list"),
        ("hello\n".to_owned(), "line 1, column 1: must be fields"),
        (
            "people:\n  - { channelId: a, channelName: A }\n  - { channelId: a, channelName: B }\n"
                .to_owned(),
            "line 3, column 18: people[1].channelId: is that of people[0], too",
        ),
        (
            "people:\n  - { channelId: a, channelName: A }\n  - { channelId: b, channelName: B, login: a }\n"
                .to_owned(),
            "people[1].login: is that of people[0], too",
        ),
        (
            with("follows:\n  - { channelId: a, followerChannelId: c }\n"),
            "line 10, column 40: follows[0].followerChannelId: there is no person c",
        ),
        (
            with("follows:\n  - { channelId: a, followerChannelId: a }\n"),
            "follows[0].followerChannelId: must be another person",
        ),
        (
            "applications:\n  - clientId: bot\n    redirectUris:\n      - http://example.com/\n".to_owned(),
            "line 4, column 9: applications[0].redirectUris[0]: ",
        ),
        (
            "applications:\n  - clientId: bot\n    scopes: [everything]\n".to_owned(),
            "line 3, column 14: applications[0].scopes[0]: there is no scope everything",
        ),
        (
            "applications:\n  - clientId: bot\n    organizationId: games\n".to_owned(),
            "applications[0].organizationId: there is no organization games",
        ),
        (
            with("messages:\n  - { channelId: a, senderChannelId: b, content: c, messageTime: noon }\n"),
            "line 10, column 66: messages[0].messageTime: must be a time",
        ),
        (
            with(
                "restrictions:\n  - { channelId: a, restrictedChannelId: b }\n  - { channelId: a, \
                 restrictedChannelId: b }\n",
            ),
            "restrictions[1].restrictedChannelId: is restricted already",
        ),
        (
            with("watched:\n  - { campaignId: c, channelId: a, minutes: 1 }\n"),
            "watched[0].campaignId: there is no campaign c",
        ),
        ("people:\n  - { channelId: a, channelName: A, passwordHash: secret }\n".to_owned(), "Argon2id"),
        (
            "people:\n  - { channelId: a, channelName: A, password: a, canSignIn: false }\n".to_owned(),
            "people[0].password: must not be given together with canSignIn",
        ),
        ("clock: noon\n".to_owned(), "line 1, column 8: clock: must be a time"),
        (
            with("tokens:\n  - { channelId: a, clientId: bot, accessToken: short, refreshToken: x }\n"),
            "tokens[0].accessToken: must be 16 to 512",
        ),
    ] {
        let error = WorldFile::parse(&text).expect_err(&text).to_string();
        assert!(error.contains(expected), "{error}\ninstead of {expected}\n{text}");
    }
}

#[test]
fn json_is_refused_by_its_path() {
    let error = WorldFile::from_json(serde_json::json!({ "people": [{ "channelId": 5 }] }));
    let error = error.expect_err("a wrong type").to_string();
    assert!(error.starts_with("people[0].channelId: "), "{error}");
}

#[test]
fn a_token_is_not_printed() {
    let pair = TokenPair {
        channel_id: "a".to_owned(),
        client_id: "bot".to_owned(),
        access_token: "a-secret-access-token".to_owned(),
        refresh_token: "a-secret-refresh-token".to_owned(),
    };
    assert!(!format!("{pair:?}").contains("secret"));
}
