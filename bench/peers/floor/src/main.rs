//! The floor: a minimal tokio server for sessions of Engine.IO 3 over websocket, whose cost is a lower bound. Each session
//! has one task and one socket, and each room a list of sockets. The server answers pings. It encodes a message once, and
//! writes it to each socket of its room at once. It has no rules, no limits and no time-outs, and does not tolerate
//! misbehaving clients, so it is only useful for comparisons.
//!
//! `bench/README.md` describes the requests that every peer serves.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Length of the accept queue.
const BACKLOG: u32 = 4_096;
/// Bytes read from a session at once: a few of its pings.
const READ_BYTES: usize = 256;
/// The text that RFC 6455 (section 1.3) appends to the client's nonce.
const NONCE_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The answer to a ping, as a whole frame.
const PONG: &[u8] = b"\x81\x013";
/// The client joined the root namespace, as a whole frame.
const JOINED: &[u8] = b"\x81\x0240";

/// One session's socket.
struct Member {
    socket: TcpStream,
    /// Bytes that the kernel had no room for. A task writes them.
    rest: Mutex<Vec<u8>>,
}

/// The sockets of each room.
#[derive(Default)]
struct Rooms(RwLock<Vec<Vec<Arc<Member>>>>);

impl Member {
    /// Writes as much as the kernel accepts now, and leaves the other bytes to a task.
    fn send(self: &Arc<Self>, frame: &[u8]) {
        let mut rest = locked(&self.rest);
        if !rest.is_empty() {
            return rest.extend_from_slice(frame);
        }
        let written = match self.socket.try_write(frame) {
            Ok(written) => written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(_) => return,
        };
        if written < frame.len() {
            *rest = frame[written..].to_vec();
            tokio::spawn(self.clone().send_rest());
        }
    }

    async fn send_rest(self: Arc<Self>) {
        while self.socket.writable().await.is_ok() {
            let mut rest = locked(&self.rest);
            match self.socket.try_write(&rest) {
                Ok(written) if written == rest.len() => return *rest = Vec::new(),
                Ok(written) => drop(rest.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// Answers pings until the client leaves. While it waits, it holds no buffer.
    async fn answer_pings(self: &Arc<Self>) -> io::Result<()> {
        loop {
            self.socket.readable().await?;
            let mut buffer = [0; READ_BYTES];
            match self.socket.try_read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) if self.leaves(&buffer[..read]) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Processes short masked frames, the only ones that these clients send. Returns whether one of them was a goodbye.
    fn leaves(self: &Arc<Self>, mut bytes: &[u8]) -> bool {
        while let [first, second, mask, _, _, _, ..] = *bytes {
            let end = 6 + usize::from(second & 0x7f);
            match first & 0x0f {
                1 if bytes.get(6).is_some_and(|byte| byte ^ mask == b'2') => self.send(PONG),
                8 => return true,
                _ => {}
            }
            bytes = bytes.get(end..).unwrap_or_default();
        }
        false
    }
}

impl Rooms {
    fn join(&self, room: usize, member: &Arc<Member>) {
        let mut rooms = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if rooms.len() <= room {
            rooms.resize_with(room + 1, Vec::new);
        }
        rooms[room].push(member.clone());
    }

    fn leave(&self, room: usize, member: &Arc<Member>) {
        let mut rooms = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = rooms[room].iter().position(|other| Arc::ptr_eq(other, member)) {
            rooms[room].swap_remove(place);
        }
    }

    /// Publishes each line: a room, a tab, a payload.
    fn publish(&self, lines: &str) {
        let rooms = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for (room, payload) in lines.lines().filter_map(|line| line.split_once('\t')) {
            let frame = event(payload);
            let room = room.parse().ok().and_then(|room: usize| rooms.get(room));
            room.into_iter().flatten().for_each(|member| member.send(&frame));
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `42["CHAT","…"]` in one text frame.
fn event(payload: &str) -> Vec<u8> {
    let mut packet = String::with_capacity(payload.len() + 128);
    packet.push_str(r#"42["CHAT",""#);
    for part in payload.split_inclusive(['"', '\\']) {
        let (plain, last) = part.split_at(part.len() - usize::from(part.ends_with(['"', '\\'])));
        packet.push_str(plain);
        if !last.is_empty() {
            packet.push('\\');
            packet.push_str(last);
        }
    }
    packet.push_str(r#""]"#);
    frame(&packet)
}

/// A text frame of less than 64 KiB.
fn frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81];
    match u8::try_from(text.len()) {
        Ok(length @ ..126) => frame.push(length),
        _ => {
            frame.push(126);
            frame.extend_from_slice(&(text.len() as u16).to_be_bytes());
        }
    }
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// The value of a header, given in lower case.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    headers.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// Serves HTTP until a websocket is opened, and returns its room.
async fn serve_http(socket: &mut TcpStream, rooms: &Rooms) -> io::Result<Option<usize>> {
    let mut bytes = Vec::with_capacity(1_024);
    loop {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            if socket.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        if let Some(nonce) = header(&head, "sec-websocket-key") {
            open(socket, nonce).await?;
            let room = head.lines().next().and_then(|line| line.split_once("room="));
            let digits = room.and_then(|(_, rest)| rest.split(|it: char| !it.is_ascii_digit()).next());
            return Ok(digits.and_then(|digits| digits.parse().ok()));
        }
        let length = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let whole = end + 4 + length;
        while bytes.len() < whole {
            if socket.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
        }
        rooms.publish(&String::from_utf8_lossy(&bytes[end + 4..whole]));
        bytes.drain(..whole);
        socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
    }
}

/// Confirms the websocket, the Engine.IO session and the namespace in one write.
async fn open(socket: &mut TcpStream, nonce: &str) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let proof = STANDARD.encode(Sha1::new().chain_update(nonce).chain_update(NONCE_SUFFIX).finalize());
    let mut out = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {proof}\r\n\r\n"
    )
    .into_bytes();
    let sid = NEXT.fetch_add(1, Ordering::Relaxed);
    out.extend(frame(&format!(
        r#"0{{"sid":"{sid:020}","upgrades":[],"pingInterval":25000,"pingTimeout":60000}}"#
    )));
    out.extend_from_slice(JOINED);
    socket.write_all(&out).await
}

async fn hold(member: Arc<Member>, room: usize, rooms: Arc<Rooms>) {
    // The result does not matter: the connection has ended.
    let _ = member.answer_pings().await;
    rooms.leave(room, &member);
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let listener = TcpSocket::new_v4()?;
    listener.bind(([127, 0, 0, 1], 0).into())?;
    let listener = listener.listen(BACKLOG)?;
    println!(r#"{{"baseUrl":"http://{}"}}"#, listener.local_addr()?);
    let rooms = Arc::new(Rooms::default());
    loop {
        let Ok((mut socket, _)) = listener.accept().await else { continue };
        let rooms = rooms.clone();
        tokio::spawn(async move {
            let _ = socket.set_nodelay(true);
            // A task keeps the size of its largest state. So this future is boxed, and the session runs in another task.
            if let Ok(Some(room)) = Box::pin(serve_http(&mut socket, &rooms)).await {
                let member = Arc::new(Member { socket, rest: Mutex::default() });
                rooms.join(room, &member);
                tokio::spawn(hold(member, room, rooms));
            }
        });
    }
}
