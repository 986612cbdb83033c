//! Ten thousand mutated frames of clients, sent to a running node.

use fuzz::Fuzz;
use testkit::{CLOSE, Setup, both, frame, text};

use super::crowd::Crowd;
use super::sessions::{session, session_queries};
use super::upgrades::{polling, post};

/// Number of sessions that receive mutated frames, on each database.
const SESSIONS: usize = 260;
/// Number of concurrent sessions.
const AT_ONCE: usize = 10;
/// Number of frames of one session.
const FRAMES: usize = 40;
/// Number of mutated posts to polling sessions.
const POSTS: usize = 100;

/// All packets of clients of each generation, including rare ones.
fn transcripts() -> Vec<Vec<u8>> {
    let old = [
        "2",
        "40/chat?token=x,",
        "42[\"hello\",{\"a\":[1,2,3]}]",
        "420[\"with an answer\"]",
        "2probe",
        "41/chat,",
        "6",
    ];
    let new =
        ["3", "40/admin,{\"token\":\"x\"}", "42/admin,[\"hello\"]", "431[\"thanks\"]", "6", "42[\"한글😀\"]"];
    let frames =
        |packets: &[&str]| packets.iter().cycle().take(FRAMES - 8).flat_map(|packet| text(packet)).collect();
    let odd = [
        frame(0x01, b"42[\"in"),
        frame(0x89, b"between"),
        frame(0x00, b" pie"),
        frame(0x80, b"ces\"]"),
        text("451-[\"x\",{\"_placeholder\":true,\"num\":0}]"),
        frame(0x82, b"\x04\x01\x02"),
        frame(0x8a, b""),
        frame(CLOSE, b"\x03\xe8bye"),
    ];
    let with_odd = |mut stream: Vec<u8>| {
        let (before, last) = odd.split_at(7);
        stream.splice(0..0, before.concat());
        stream.extend(last.concat());
        stream
    };
    vec![with_odd(frames(&old)), with_odd(frames(&new)), with_odd(frames(&["2"])), with_odd(frames(&["3"]))]
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_mutated_frames_end_sessions_with_named_reasons_only() {
    both(Setup::default(), |world| async move {
        let crowd = Crowd::gather(&world, "haneul", 10).await;
        let tokens = [&b"\x81\x80"[..], b"\x01\x81", b"\x88\x82", b"\x81\xfe\xff\xff", b"\x82\xff", b"\xc1"];
        let mut streams = Fuzz::new("live node").seeds(transcripts()).tokens(tokens).mutations();
        let queries = session_queries(&world, "mutated", SESSIONS).await;
        for (round, queries) in queries.chunks(AT_ONCE).enumerate() {
            let mut tasks = Vec::new();
            for query in queries {
                let (address, query, revision) = (world.address(), query.clone(), [2, 3, 4][round % 3]);
                let stream = streams.next().expect("there is always another");
                tasks.push(tokio::spawn(async move {
                    let mut peer = session(address, &query, revision).await;
                    peer.write(&stream).await;
                    peer.finish_writing().await;
                    peer.rest().await;
                }));
            }
            for task in tasks {
                task.await.expect("every peer is let go");
            }
        }
        // The same for posts.
        let bodies = ["1:2", "11:42[\"hello\"]1:6", "6:b4AQL/1:2", "9:42[\"한😀\"]", "0:"];
        let mut bodies =
            Fuzz::new("live posts").seeds(bodies).tokens([":", "1:2", "-1:", "b4", "한"]).mutations();
        for query in session_queries(&world, "posting", POSTS).await {
            let query = polling(&world, &query).await;
            let status = post(world.address(), &query, bodies.next().expect("another")).await.status;
            assert!(matches!(status, 200 | 400 | 413), "{status}");
            let status = post(world.address(), &query, "1:1").await.status;
            assert!(matches!(status, 200 | 400), "{status}");
        }
        let sockets = crowd.alone(&world, 0).await;
        assert_eq!(sockets.closed("internal_error"), 0, "{sockets:?}");
        assert!(
            sockets.closed("protocol_error") > 20 && sockets.closed("client_goodbye") > 20,
            "{sockets:?}"
        );
        crowd.disperse().await;
    })
    .await;
}
