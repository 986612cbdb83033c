//! Costs of the codec's hot paths: encoding an event for all sessions, decoding a frame of one session.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

use socketio::websocket::{DEFAULT_MAX_MESSAGE_BYTES, WsError};
use socketio::{Decoder, Framing, Open, Revision, Session, Timing, packet, payload};

const CHAT: &str = concat!(
    r#"{"channelId":"0b33823ac81de48d5b78a38cdbc0ab94","senderChannelId":"909501f048b44cf0d5c1d2c3d3e4f5a6","#,
    r#""chatChannelId":"N1ABCD","profile":{"nickname":"방송보는고양이","badges":[{"imageUrl":"#,
    r#""https://cdn.example.test/badges/subscriber_12.png"}],"verifiedMark":false},"userRoleCode":"common_user","#,
    r#""content":"안녕하세요! 오늘 방송도 재미있게 보고 있어요 😀🎉 {:hello:}","emojis":{"hello":"#,
    r#""https://cdn.example.test/emojis/hello.gif"},"messageTime":1760000000123,"eventSentAt":"2026-07-18 23:32:12"}"#,
);

fn encode_event(c: &mut Criterion) {
    let mut group = c.benchmark_group("encode");
    group.throughput(Throughput::Bytes(CHAT.len() as u64));
    let chat: serde_json::Value = serde_json::from_str(CHAT).expect("JSON");
    group.bench_function("chat_event", |b| b.iter(|| packet::event("CHAT", black_box(&chat))));
    let frame = packet::event("CHAT", &chat);
    group.bench_function("clone_frame", |b| b.iter(|| black_box(&frame).clone()));
    group.finish();
}

fn decode_frames(c: &mut Criterion) {
    let mut group = c.benchmark_group("websocket");
    for (name, frame) in [
        ("text_1k", wire_client::text(&format!("42[\"{}\"]", "a".repeat(1017)))),
        ("ping", wire_client::text("2")),
    ] {
        let mut decoder = Decoder::new(DEFAULT_MAX_MESSAGE_BYTES);
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                || frame.clone(),
                |input| {
                    decoder.decode(input, |event| {
                        black_box(event);
                        Ok::<(), WsError>(())
                    })
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn payloads(c: &mut Criterion) {
    let mut group = c.benchmark_group("payload");
    let chat: serde_json::Value = serde_json::from_str(CHAT).expect("JSON");
    let frame = packet::event("CHAT", &chat);
    for (name, framing) in
        [("text", Framing::Text), ("binary", Framing::Binary), ("records", Framing::Records)]
    {
        let packets = || std::iter::repeat_n(frame.packet(), 10);
        let body = payload::encode(framing, packets());
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(format!("encode_10_{name}"), |b| b.iter(|| payload::encode(framing, packets())));
        group.bench_function(format!("decode_10_{name}"), |b| {
            b.iter(|| payload::decode(framing, black_box(&body), payload::DEFAULT_MAX_BODY_BYTES));
        });
    }
    group.finish();
}

fn sessions(c: &mut Criterion) {
    let open = Open {
        revision: Revision::V3,
        sid: "s",
        may_upgrade: false,
        timing: Timing::default(),
        max_payload: DEFAULT_MAX_MESSAGE_BYTES,
    };
    let mut session = Session::open(&open, 0, |_| {});
    let mut now = 0;
    c.bench_function("session/ping_round", |b| {
        b.iter(|| {
            now += 25_000;
            let mut answers = 0;
            let signal = session.on_packet(now, "s", black_box("2"), |frame| answers += frame.len());
            (signal, answers, session.deadline())
        });
    });
}

criterion_group!(benches, encode_event, decode_frames, payloads, sessions);
criterion_main!(benches);
