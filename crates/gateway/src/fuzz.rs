//! Fuzzes the query of the socket's path, and the frames that polls split.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ::fuzz::Fuzz;
use bytes::Bytes;
use socketio::{Frame, Framing, payload};

use crate::config::QUERY_BYTES_MAX;
use crate::http::Params;
use crate::session::{Limits, SendQueue};

#[test]
fn fuzz_queries() {
    let seeds = [
        "auth=a%2Bb&EIO=3&transport=polling&t=NxYz&b64=1",
        "EIO=4&transport=websocket&sid=abcdefghijklmnopqr_-",
        "EIO=2&transport=polling&j=0",
        "EIO=3&EIO=4&transport=websocket&transport=polling&sid=&auth=",
    ];
    let tokens =
        ["&", "=", "%", "%00", "%ff", "+", "EIO=", "sid=", "transport=", "auth=", "b64=true", "j", "한"];
    Fuzz::new("queries").seeds(seeds).tokens(tokens).bytes_max(QUERY_BYTES_MAX + 10).run(|input| {
        let query = String::from_utf8_lossy(input);
        let params = match Params::parse(&query) {
            Ok(params) => params,
            Err(denied) => return Err(format!("{denied:?}")),
        };
        assert!(query.len() <= QUERY_BYTES_MAX);
        if let Some(Some(sid)) = &params.sid {
            assert!(sid.as_str().len() == 20 && sid.as_str().is_ascii());
        }
        assert_eq!(format!("{:?}", params.auth), "Auth", "a token does not print");
        Ok((
            params.revision,
            format!("{:?}", params.transport),
            params.sid.map(|sid| sid.is_some()),
            params.base64,
        ))
    });
}

/// Each line of the input is a queued packet. Polls must return these packets in order, and the byte count
/// must match.
#[test]
fn fuzz_polls_take_what_was_queued() {
    let long = format!("4{}\n2\n42[\"{}\"]", "x".repeat(130), "가".repeat(60));
    Fuzz::new("queued packets")
        .seeds(["40\n2\n42[\"a\"]", "6\n6\n6\n6", &long])
        .tokens(["\n", "4", "\n4"])
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            let packets: Vec<_> =
                text.lines().filter(|line| !line.is_empty() && !line.contains('\u{1e}')).collect();
            let (gauge, mut queue) = (AtomicU64::new(0), SendQueue::default());
            for batch in packets.chunks(3) {
                let bytes: Bytes =
                    batch.iter().flat_map(|packet| Frame::text(packet).into_websocket()).collect();
                let limits = Limits { messages_max: usize::MAX, bytes_max: usize::MAX, gauge: &gauge };
                queue.send(None, &bytes, batch.len(), 0, limits).expect("there is room");
            }
            let mut taken = Vec::new();
            while let Some(body) = queue.take_packets(Framing::Records, &gauge) {
                let body = String::from_utf8(body).expect("packets are texts");
                taken.extend(body.split('\u{1e}').map(str::to_owned));
            }
            assert_eq!(taken, packets);
            assert!(queue.is_empty() && gauge.load(Relaxed) == 0);
            (packets.len().min(40), payload::MAX_PACKETS)
        });
}
