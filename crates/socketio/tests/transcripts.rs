//! Packets of published clients, recorded over loopback, and the expected answers. The clients were made to
//! send binary attachments, unknown namespaces and non-ASCII events.

use socketio::payload::{self, Item};
use socketio::upgrade::Step;
use socketio::websocket::DEFAULT_MAX_MESSAGE_BYTES;
use socketio::{CloseReason, Decoder, Event, Framing, Open, Revision, Session, Signal, Timing, Upgrade};
use wire_client::{BINARY, CLOSE, TEXT, frame};

use Line::*;

const SID: &str = "s1";
const TIMING: Timing = Timing { ping_interval_ms: 700, ping_timeout_ms: 500 };

/// One line of a transcript.
enum Line {
    /// The client sends a text message over its websocket.
    Ws(&'static str),
    /// The client sends a binary message over its websocket.
    WsBinary(&'static [u8]),
    /// The client sends a close frame with this code.
    WsClose(u16),
    /// The client posts a body with this content type.
    Post(&'static str, &'static [u8]),
    /// The server answers with this packet.
    Sends(&'static str),
    /// The client is connected: it may receive events.
    IsConnected,
    /// This many milliseconds pass, and the server checks its deadlines.
    Wait(u64),
    /// The probing websocket advances the upgrade.
    Upgrades(Step),
    /// The session ends.
    Ends(CloseReason),
}

/// An action of the server.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Sent(String),
    Connected,
    Upgraded(Step),
    Ended(CloseReason),
}

struct World {
    session: Session,
    decoder: Decoder,
    /// The upgrade, while a polling session has a websocket that is not its transport yet.
    upgrade: Option<Upgrade>,
    now: u64,
    actions: Vec<Action>,
}

impl World {
    fn open(revision: Revision, polling: bool) -> Self {
        let open = Open { revision, sid: SID, may_upgrade: polling, timing: TIMING, max_payload: 16_384 };
        let mut frames = 0;
        let session = Session::open(&open, 0, |_| frames += 1);
        assert_eq!(
            (frames, session.is_connected()),
            if revision == Revision::V4 { (1, false) } else { (2, true) }
        );
        let decoder = Decoder::new(DEFAULT_MAX_MESSAGE_BYTES);
        Self { session, decoder, upgrade: polling.then(Upgrade::default), now: 0, actions: Vec::new() }
    }

    fn play(&mut self, line: &Line) {
        let result = match line {
            Ws(text) => self.websocket(&frame(TEXT, text.as_bytes())),
            WsBinary(bytes) => self.websocket(&frame(BINARY, bytes)),
            WsClose(code) => self.websocket(&frame(CLOSE, &code.to_be_bytes())),
            Post(content_type, body) => self.post(content_type, body),
            Wait(ms) => {
                self.now += ms;
                let actions = &mut self.actions;
                self.session.on_tick(self.now, |frame| actions.push(sent(frame.packet())))
            }
            Sends(_) | IsConnected | Upgrades(_) | Ends(_) => Ok(()),
        };
        if let Err(reason) = result {
            self.actions.push(Action::Ended(reason));
        }
    }

    fn websocket(&mut self, bytes: &[u8]) -> Result<(), CloseReason> {
        let Self { session, decoder, upgrade, now, actions } = self;
        decoder.decode(&mut bytes.to_vec(), |event| match (event, upgrade.as_mut()) {
            (Event::Text(text), Some(probe)) => {
                let step = probe.on_packet(text)?;
                if step == Step::Upgraded {
                    *upgrade = None;
                }
                actions.push(Action::Upgraded(step));
                Ok(())
            }
            (Event::Text(text), None) => on_text(session, *now, text, actions),
            (Event::Binary(data), _) => {
                session.on_binary(*now, SID, data, |frame| actions.push(sent(frame.packet())))
            }
            (Event::Ping(_) | Event::Pong, _) => session.on_websocket_control(*now),
            (Event::Close(_), _) => Err(CloseReason::ClientGoodbye),
        })
    }

    fn post(&mut self, content_type: &str, body: &[u8]) -> Result<(), CloseReason> {
        let framing = Framing::of_request(self.session.revision(), content_type);
        for item in payload::decode(framing, body, payload::DEFAULT_MAX_BODY_BYTES)? {
            match item {
                Item::Text(text) => on_text(&mut self.session, self.now, &text, &mut self.actions)?,
                Item::Binary(data) => {
                    assert!(data.ends_with(&[1, 2, 255]));
                    let actions = &mut self.actions;
                    self.session
                        .on_binary(self.now, SID, &data, |frame| actions.push(sent(frame.packet())))?;
                }
            }
        }
        Ok(())
    }
}

fn sent(packet: &[u8]) -> Action {
    Action::Sent(String::from_utf8_lossy(packet).into())
}

fn on_text(
    session: &mut Session,
    now: u64,
    text: &str,
    actions: &mut Vec<Action>,
) -> Result<(), CloseReason> {
    let signal = session.on_packet(now, SID, text, |frame| actions.push(sent(frame.packet())))?;
    if signal == Signal::Connected {
        actions.push(Action::Connected);
    }
    Ok(())
}

/// Plays the lines. Before each line of the client, the server must have done exactly the expected actions.
fn check(client: &str, revision: Revision, polling: bool, lines: &[Line]) {
    let mut world = World::open(revision, polling);
    let mut expected = Vec::new();
    for line in lines {
        match line {
            Sends(text) => expected.push(Action::Sent((*text).into())),
            IsConnected => expected.push(Action::Connected),
            Upgrades(step) => expected.push(Action::Upgraded(*step)),
            Ends(reason) => expected.push(Action::Ended(*reason)),
            Ws(_) | WsBinary(_) | WsClose(_) | Post(..) | Wait(_) => {
                assert_eq!(world.actions, expected, "{client}");
                world.play(line);
            }
        }
    }
    assert_eq!(world.actions, expected, "{client}");
}

const GOODBYE: Line = Ends(CloseReason::ClientGoodbye);
const JS_TEXT: &str = "text/plain;charset=UTF-8";
const OCTETS: &str = "application/octet-stream";
const PLACEHOLDER: &str = r#"451-["bin",{"_placeholder":true,"num":0}]"#;

#[test]
fn javascript_1_0_6_in_a_browser_speaks_revision_2() {
    check(
        "socket.io-client 1.0.6, websocket",
        Revision::V2,
        false,
        &[
            // This version double-encodes UTF-8 also on websockets.
            Ws("42[\"hello\",{\"a\":\"í\u{95}\u{9c}ð\u{9f}\u{98}\u{80}\"}]"),
            Wait(600),
            Ws("2"),
            Sends("3"),
            Wait(600),
            Ws("2"),
            Sends("3"),
            Ws("41"),
            GOODBYE,
        ],
    );
    check(
        "socket.io-client 1.0.6, polling",
        Revision::V2,
        true,
        &[
            Post(JS_TEXT, "27:42[\"hello\",{\"a\":\"í\u{95}\u{9c}ð\u{9f}\u{98}\u{80}\"}]".as_bytes()),
            Post(JS_TEXT, b"1:2"),
            Sends("3"),
            Post(JS_TEXT, b"2:41"),
            GOODBYE,
        ],
    );
}

#[test]
fn javascript_1_7_4_asks_for_namespaces_without_a_comma() {
    check(
        "socket.io-client 1.7.4, websocket",
        Revision::V3,
        false,
        &[
            Ws("40/nope"),
            Sends("44/nope,\"Invalid namespace\""),
            Ws("420[\"hello\",{\"a\":\"한😀\"}]"),
            Ws(PLACEHOLDER),
            WsBinary(&[4, 1, 2, 255]),
            Ws("2"),
            Sends("3"),
            Ws("41"),
            GOODBYE,
        ],
    );
    check(
        "socket.io-client 1.7.4, polling",
        Revision::V3,
        true,
        &[
            Post(JS_TEXT, b"7:40/nope"),
            Sends("44/nope,\"Invalid namespace\""),
            Post(JS_TEXT, "28:420[\"hello\",{\"a\":\"í\u{95}\u{9c}ð\u{9f}\u{98}\u{80}\"}]".as_bytes()),
            Post(JS_TEXT, b"41:451-[\"bin\",{\"_placeholder\":true,\"num\":0}]6:b4AQL/"),
            Post(JS_TEXT, b"1:2"),
            Sends("3"),
            Post(JS_TEXT, b"1:1"),
            GOODBYE,
        ],
    );
}

#[test]
fn javascript_2_0_3_counts_utf_16_units_and_posts_while_it_probes() {
    check(
        "socket.io-client 2.0.3, polling, then websocket",
        Revision::V3,
        true,
        &[
            Post(JS_TEXT, b"8:40/nope,"),
            Sends("44/nope,\"Invalid namespace\""),
            Ws("2probe"),
            Upgrades(Step::Probed),
            Post(JS_TEXT, "24:420[\"hello\",{\"a\":\"한😀\"}]".as_bytes()),
            Ws("5"),
            Upgrades(Step::Upgraded),
            Ws(PLACEHOLDER),
            WsBinary(&[4, 1, 2, 255]),
            Ws("2"),
            Sends("3"),
            Ws("41"),
            GOODBYE,
        ],
    );
}

#[test]
fn javascript_4_8_1_sends_connect_and_answers_pings() {
    check(
        "socket.io-client 4.8.1, websocket",
        Revision::V4,
        false,
        &[
            Ws("40"),
            Sends("40{\"sid\":\"s1\"}"),
            IsConnected,
            Ws("40/nope,"),
            Sends("44/nope,{\"message\":\"Invalid namespace\"}"),
            Ws("420[\"hello\",{\"a\":\"한😀\"}]"),
            Ws(PLACEHOLDER),
            WsBinary(&[1, 2, 255]),
            Wait(700),
            Sends("2"),
            Ws("3"),
            Wait(699),
            Wait(1),
            Sends("2"),
            Ws("3"),
            Ws("41"),
            GOODBYE,
        ],
    );
    check(
        "socket.io-client 4.8.1, polling",
        Revision::V4,
        true,
        &[
            Post(JS_TEXT, b"40"),
            Sends("40{\"sid\":\"s1\"}"),
            IsConnected,
            Post(
                JS_TEXT,
                "420[\"hello\",{\"a\":\"한😀\"}]\u{1e}451-[\"bin\",{\"_placeholder\":true,\"num\":0}]\u{1e}bAQL/"
                    .as_bytes(),
            ),
            Post(JS_TEXT, b"3"),
            Ws("2probe"),
            Upgrades(Step::Probed),
            Post(JS_TEXT, b"40/nope,"),
            Sends("44/nope,{\"message\":\"Invalid namespace\"}"),
            Ws("5"),
            Upgrades(Step::Upgraded),
            Wait(700),
            Sends("2"),
            Ws("3"),
            WsClose(1001),
            GOODBYE,
        ],
    );
}

#[test]
fn python_with_engineio_3_posts_binary_framing_and_pings_first() {
    check(
        "python-socketio 4.6 with python-engineio 3.14, polling",
        Revision::V3,
        true,
        &[
            Post(OCTETS, b"\0\x01\xff2"),
            Sends("3"),
            Post(
                OCTETS,
                b"\0\x03\x08\xff42[\"hello\",{\"a\":\"\\ud55c\\ud83d\\ude00\"}]\
                  \0\x04\x01\xff451-[\"bin\",{\"_placeholder\":true,\"num\":0}]\x01\x04\xff\x04\x01\x02\xff",
            ),
            Post(OCTETS, b"\0\x02\xff41\0\x01\xff1"),
            GOODBYE,
        ],
    );
    check(
        "python-socketio 4.6 with python-engineio 3.14, upgrade",
        Revision::V3,
        true,
        &[
            Ws("2probe"),
            Upgrades(Step::Probed),
            Ws("5"),
            Upgrades(Step::Upgraded),
            Ws("2"),
            Sends("3"),
            Ws(PLACEHOLDER),
            WsBinary(&[4, 1, 2, 255]),
            WsClose(1000),
            GOODBYE,
        ],
    );
}

#[test]
fn python_with_engineio_4_connects_with_an_empty_object() {
    check(
        "python-socketio 5, upgrade, then websocket",
        Revision::V4,
        true,
        &[
            Ws("2probe"),
            Upgrades(Step::Probed),
            Ws("5"),
            Upgrades(Step::Upgraded),
            Ws("40{}"),
            Sends("40{\"sid\":\"s1\"}"),
            IsConnected,
            Ws("42[\"hello\",{\"a\":\"\\ud55c\\ud83d\\ude00\"}]"),
            Ws(PLACEHOLDER),
            WsBinary(&[1, 2, 255]),
            Wait(700),
            Sends("2"),
            Ws("3"),
            Ws("41"),
            GOODBYE,
        ],
    );
    check(
        "python-socketio 5, polling",
        Revision::V4,
        true,
        &[
            Post("text/plain", b"40{}"),
            Sends("40{\"sid\":\"s1\"}"),
            IsConnected,
            Post("text/plain", b"41\x1e1"),
            GOODBYE,
        ],
    );
}
