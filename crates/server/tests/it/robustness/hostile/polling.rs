//! Hostile polling: bodies with wrong lengths, parallel requests, sids of other clients.

use testkit::{Connection, Request, Setup, both};

use super::acts::until_closed;
use super::crowd::Crowd;
use super::sessions::{candidate, session_queries};
use super::silence::open_polling;
use super::upgrades::{poll, polling, post};

#[tokio::test(flavor = "multi_thread")]
async fn a_body_with_wrong_lengths_ends_its_session_with_a_reason() {
    both(Setup::default(), |world| async move {
        let crowd = Crowd::gather(&world, "haneul", 5).await;
        let cases: [(Vec<u8>, &str, u16); 14] = [
            (b"".into(), "protocol_error", 400),
            (b"2".into(), "protocol_error", 400),
            (b"-1:2".into(), "protocol_error", 400),
            (b"99999999999999999999:2".into(), "protocol_error", 400),
            (b"9999999999:2".into(), "protocol_error", 400),
            (b"4294967297:2".into(), "protocol_error", 400),
            (b"2:2".into(), "protocol_error", 400),
            (b"1:22".into(), "protocol_error", 400),
            (b"1:9".into(), "protocol_error", 400),
            (b"3:b4!".into(), "protocol_error", 400),
            (b"1:\xff".into(), "invalid_utf8", 400),
            (b"1:6".repeat(257), "packet_flood", 400),
            (b"1:6".repeat(101), "packet_flood", 400),
            ([b"70000:".to_vec(), vec![b'4'; 70_000]].concat(), "message_too_big", 413),
        ];
        let queries = session_queries(&world, "liar", cases.len()).await;
        for (query, (body, reason, status)) in queries.iter().zip(cases) {
            let query = polling(&world, query).await;
            let before = world.sockets().await.closed(reason);
            let answer = post(world.address(), &query, body.clone()).await;
            assert_eq!(answer.status, status, "{}", body.escape_ascii());
            answer.message();
            until_closed(&world, reason, before + 1).await;
            assert!(poll(world.address(), &query).await.text().ends_with("1:1"), "the poll is answered");
        }
        // Posts with an empty body count too.
        let query = polling(&world, &session_queries(&world, "nothing", 1).await[0]).await;
        let before = world.sockets().await.closed("packet_flood");
        let mut connection = Connection::open(world.address()).await;
        let target = format!("/socket.io/?{query}");
        for round in 0..=100 {
            let answer = connection.send(&Request::post(&target).body("0:0:0:")).await;
            assert_eq!(answer.status, if round < 100 { 200 } else { 400 }, "{round}");
        }
        until_closed(&world, "packet_flood", before + 1).await;
        crowd.disperse().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_polls_or_posts_end_their_session_and_are_all_answered() {
    both(Setup::default(), |world| async move {
        let crowd = Crowd::gather(&world, "haneul", 5).await;
        let queries = session_queries(&world, "parallel", 2).await;
        let address = world.address();

        let query = polling(&world, &queries[0]).await;
        let polls: Vec<_> = (0..100)
            .map(|_| {
                tokio::spawn({
                    let query = query.clone();
                    async move { poll(address, &query).await.status }
                })
            })
            .collect();
        let mut statuses = Vec::new();
        for answered in polls {
            statuses.push(answered.await.expect("every poll is answered"));
        }
        assert!(statuses.iter().all(|status| matches!(status, 200 | 400)), "{statuses:?}");
        until_closed(&world, "poll_conflict", 1).await;

        let query = polling(&world, &queries[1]).await;
        let mut half = Connection::open(address).await;
        half.write(
            format!("POST /socket.io/?{query} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n1").as_bytes(),
        )
        .await;
        // The second poll conflicts as soon as the first one is running.
        while world.sockets().await.closed("poll_conflict") < 2 {
            let posted = post(address, &query, "1:6").await.status;
            assert!(matches!(posted, 200 | 400), "{posted}");
        }
        assert!(
            post(address, &query, "1:6").await.status == 400
                || world.sockets().await.sessions == crowd.size()
        );
        crowd.disperse().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sid_is_valid_only_for_its_client() {
    both(Setup::default(), |world| async move {
        let queries = session_queries(&world, "sid", 3).await;
        let query = polling(&world, &queries[0]).await;
        let mine = open_polling(world.address(), &queries[1], 3).await;
        let (_, sid) = query.split_once("&sid=").expect("a sid");
        let (my_token, _) = mine.split_once("&sid=").expect("a sid");
        let unused = format!("{}&EIO=3&transport=polling&b64=1", queries[2]);
        // With the own token, an unused token, and no token.
        for foreign in [my_token, unused.as_str(), "EIO=3&transport=polling", "auth=&EIO=3&transport=polling"]
        {
            let foreign = format!("{foreign}&sid={sid}");
            for answer in
                [poll(world.address(), &foreign).await, post(world.address(), &foreign, "1:1").await]
            {
                answer.assert_refused(401, "UNAUTHORIZED");
            }
            let refused = candidate(world.address(), &foreign).await.expect_err("refused");
            assert_eq!(refused.status, 401);
        }
        for guess in 0..200 {
            let guess = format!("{my_token}&sid={guess:020}");
            assert_eq!(poll(world.address(), &guess).await.status, 400);
        }
        for wrong in ["", "x", "../../etc/passwd", "%00", "%EA%B0%80", "' OR 1=1 --", &"A".repeat(3_000)] {
            let wrong = format!("{my_token}&sid={}", testkit::encode(wrong));
            assert_eq!(poll(world.address(), &wrong).await.status, 400, "{wrong}");
        }
        // The session is not affected, and the unused token is still valid.
        assert_eq!(post(world.address(), &query, "1:2").await.text(), "ok");
        assert_eq!(poll(world.address(), &query).await.text(), "1:3");
        open_polling(world.address(), &queries[2], 3).await;
        assert_eq!(world.sockets().await.all_closed(), 0);
    })
    .await;
}
