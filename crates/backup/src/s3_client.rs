//! Requests to an S3-like object store, signed in their query strings.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use http_client::{Connection, Limits, Tls, system_roots};
use rusty_s3::actions::{ListObjectsV2, S3Action};
use rusty_s3::{Bucket, Credentials};
use tokio::net::TcpStream;
use url::{Host, Url};

use crate::BackupError;

/// The largest body of a request or an answer, in bytes: a part of a large object.
pub(crate) const PART_BYTES: usize = 8 << 20;
/// Maximum number of parts of an object, as the protocol says.
pub(crate) const PARTS_MAX: u64 = 10_000;
/// What an answer has beside its body, in bytes: TLS records, headers.
const FRAMING_BYTES_MAX: usize = 1 << 20;
/// How long a signature is valid.
const SIGNED_FOR: Duration = Duration::from_secs(600);
/// Deadline of a connection with its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Deadline of one request with its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// The pauses before a request is sent again, after an error that may pass.
const RETRIES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];
/// Characters of an answer that an error shows.
const EXCERPT_CHARS_MAX: usize = 300;

/// A bucket, and the connection to its server.
pub(crate) struct Client {
    bucket: Bucket,
    credentials: Credentials,
    tls: Tls,
    connection: Option<Connection>,
    /// Whether the server has answered once.
    has_answered: bool,
}

/// An answer with a status of success.
struct Success {
    body: Vec<u8>,
    etag: Option<String>,
}

/// Why there is no such answer.
enum RequestError {
    /// The next attempt may succeed.
    Passing(String),
    /// There is no such object.
    Missing,
    /// Every attempt will fail.
    Lasting(String),
}

impl Client {
    pub fn new(bucket: Bucket, credentials: Credentials) -> Result<Self, BackupError> {
        let tls = Tls::new(system_roots());
        let tls = tls.map_err(|error| BackupError::Remote(format!("TLS is not available: {error}")))?;
        Ok(Self { bucket, credentials, tls, connection: None, has_answered: false })
    }

    /// The keys that begin with a text, in their order.
    pub async fn keys(&mut self, prefix: &str) -> Result<Vec<String>, BackupError> {
        Ok(self.objects(prefix).await?.into_iter().map(|(key, _)| key).collect())
    }

    /// The keys that begin with a text, in their order, with the sizes of their objects, if the store says
    /// them.
    pub async fn objects(&mut self, prefix: &str) -> Result<Vec<(String, Option<u64>)>, BackupError> {
        let (mut objects, mut next) = (Vec::new(), None::<String>);
        loop {
            let bucket = self.bucket.clone();
            let credentials = self.credentials.clone();
            let mut list = bucket.list_objects_v2(Some(&credentials));
            list.with_prefix(prefix);
            if let Some(token) = &next {
                list.with_continuation_token(token.as_str());
            }
            let answer = self.call(Method::GET, list.sign(SIGNED_FOR), None, Bytes::new()).await?;
            let text = String::from_utf8_lossy(&answer.body);
            let page = ListObjectsV2::parse_response(&text).map_err(|_| not_s3("the list of the objects"))?;
            objects.extend(page.contents.into_iter().map(|object| (object.key, object.size)));
            next = page.next_continuation_token;
            if next.is_none() {
                return Ok(objects);
            }
        }
    }

    /// The bytes of an object from `from` on, up to [`PART_BYTES`]; `None` if there is no such object.
    pub async fn get(&mut self, key: &str, from: u64) -> Result<Option<Vec<u8>>, BackupError> {
        let url = self.bucket.get_object(Some(&self.credentials), key).sign(SIGNED_FOR);
        let range = format!("bytes={from}-{}", from + PART_BYTES as u64 - 1);
        match self.try_call(Method::GET, url, Some(&range), Bytes::new()).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(RequestError::Missing) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the server answers at all, whatever it says of an object.
    pub async fn reach(&mut self, key: &str) -> Result<(), BackupError> {
        match self.get(key, 0).await {
            Err(error) if !self.has_answered => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes an object of up to [`PART_BYTES`].
    pub async fn put(&mut self, key: &str, body: Bytes) -> Result<(), BackupError> {
        let url = self.bucket.put_object(Some(&self.credentials), key).sign(SIGNED_FOR);
        self.call(Method::PUT, url, None, body).await?;
        Ok(())
    }

    /// Deletes an object, if it is there.
    pub async fn delete(&mut self, key: &str) -> Result<(), BackupError> {
        let url = self.bucket.delete_object(Some(&self.credentials), key).sign(SIGNED_FOR);
        match self.try_call(Method::DELETE, url, None, Bytes::new()).await {
            Ok(_) | Err(RequestError::Missing) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins an object of several parts, and gives the id of the upload.
    pub async fn begin_parts(&mut self, key: &str) -> Result<String, BackupError> {
        let url = self.bucket.create_multipart_upload(Some(&self.credentials), key).sign(SIGNED_FOR);
        let answer = self.call(Method::POST, url, None, Bytes::new()).await?;
        let text = String::from_utf8_lossy(&answer.body);
        element(&text, "UploadId").map(str::to_owned).ok_or_else(|| not_s3("an upload"))
    }

    /// Writes a part, numbered from 1, and gives its tag.
    pub async fn put_part(
        &mut self,
        key: &str,
        upload: &str,
        number: u16,
        body: Bytes,
    ) -> Result<String, BackupError> {
        let url = self.bucket.upload_part(Some(&self.credentials), key, number, upload).sign(SIGNED_FOR);
        let answer = self.call(Method::PUT, url, None, body).await?;
        answer.etag.ok_or_else(|| not_s3("a part"))
    }

    /// Completes an object of these parts.
    pub async fn end_parts(&mut self, key: &str, upload: &str, tags: &[String]) -> Result<(), BackupError> {
        let tags = tags.iter().map(String::as_str);
        let bucket = self.bucket.clone();
        let credentials = self.credentials.clone();
        let action = bucket.complete_multipart_upload(Some(&credentials), key, upload, tags);
        let url = action.sign(SIGNED_FOR);
        let answer = self.call(Method::POST, url, None, action.body().into()).await?;
        // The status is sent before the object is complete, so a failure is in the body.
        let text = String::from_utf8_lossy(&answer.body);
        if text.contains("<Error>") {
            return Err(BackupError::Remote(format!(
                "the object store did not complete {key}: {}",
                excerpt(&text)
            )));
        }
        Ok(())
    }

    /// Deletes the parts of an object that is not completed.
    pub async fn abort_parts(&mut self, key: &str, upload: &str) -> Result<(), BackupError> {
        let url = self.bucket.abort_multipart_upload(Some(&self.credentials), key, upload).sign(SIGNED_FOR);
        self.call(Method::DELETE, url, None, Bytes::new()).await?;
        Ok(())
    }

    /// Deletes the parts of objects that were never completed, whose keys begin with a text: those that the
    /// store lists, a thousand at most. Not all stores list them, so a failure is no error.
    pub async fn abort_uploads(&mut self, prefix: &str, is_abandoned: impl Fn(&str) -> bool) {
        let (bucket, credentials) = (self.bucket.clone(), self.credentials.clone());
        // The library does not have this request: a GET of the bucket.
        let mut list = bucket.get_object(Some(&credentials), "");
        list.query_mut().insert("uploads", "");
        list.query_mut().insert("prefix", prefix);
        let url = list.sign(SIGNED_FOR);
        let text = match self.call_once(&Method::GET, &url, None, Bytes::new()).await {
            Ok(answer) => String::from_utf8_lossy(&answer.body).into_owned(),
            Err(error) => {
                let error = BackupError::from(error);
                return tracing::debug!(%error, "the object store lists no uploads that were not completed");
            }
        };
        for (key, upload) in uploads_of(&text, prefix).into_iter().filter(|(key, _)| is_abandoned(key)) {
            match self.abort_parts(key, upload).await {
                Ok(()) => tracing::info!(key, "ended an upload that was not completed"),
                Err(error) => {
                    return tracing::debug!(%error, key, "cannot end an upload that was not completed");
                }
            }
        }
    }

    async fn call(
        &mut self,
        method: Method,
        url: Url,
        range: Option<&str>,
        body: Bytes,
    ) -> Result<Success, BackupError> {
        self.try_call(method, url, range, body).await.map_err(BackupError::from)
    }

    /// Sends a request, again after errors that may pass. A server that has not answered yet may be the wrong
    /// one, so it gets one more chance only.
    async fn try_call(
        &mut self,
        method: Method,
        url: Url,
        range: Option<&str>,
        body: Bytes,
    ) -> Result<Success, RequestError> {
        let retries = if self.has_answered { &RETRIES[..] } else { &RETRIES[..1] };
        for pause in retries.iter().copied() {
            match self.call_once(&method, &url, range, body.clone()).await {
                Err(RequestError::Passing(_)) => tokio::time::sleep(pause).await,
                ended => return ended,
            }
        }
        self.call_once(&method, &url, range, body).await
    }

    async fn call_once(
        &mut self,
        method: &Method,
        url: &Url,
        range: Option<&str>,
        body: Bytes,
    ) -> Result<Success, RequestError> {
        let request = request(method, url, range, body)?;
        let mut connection = match self.connection.take() {
            Some(connection) if !connection.is_closed() => connection,
            _ => connect(url, &self.tls).await?,
        };
        let timeout = RequestError::Passing(format!("no answer within {} s", REQUEST_TIMEOUT.as_secs()));
        let answer =
            tokio::time::timeout(REQUEST_TIMEOUT, connection.send(request)).await.map_err(|_| timeout)?;
        let answer = answer.map_err(|error| RequestError::Passing(error.to_string()))?;
        self.has_answered = true;
        if !answer.is_whole {
            return Err(RequestError::Lasting("the answer is too long".to_owned()));
        }
        if connection.is_ready().await {
            self.connection = Some(connection);
        }
        let status = answer.status;
        if status.is_success() {
            let etag = answer.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
            return Ok(Success { body: answer.beginning, etag });
        }
        // There are no bytes behind the end.
        if status == StatusCode::RANGE_NOT_SATISFIABLE {
            return Ok(Success { body: Vec::new(), etag: None });
        }
        let text = format!("{status} {}", excerpt(&String::from_utf8_lossy(&answer.beginning)));
        Err(match status {
            StatusCode::NOT_FOUND if text.contains("NoSuchKey") => RequestError::Missing,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => RequestError::Passing(text),
            _ if status.is_server_error() => RequestError::Passing(text),
            _ => RequestError::Lasting(text),
        })
    }
}

fn request(
    method: &Method,
    url: &Url,
    range: Option<&str>,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, RequestError> {
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let mut request = Request::builder().method(method).uri(target).header(header::HOST, host);
    if let Some(range) = range {
        request = request.header(header::RANGE, range);
    }
    request.body(Full::new(body)).map_err(|_| RequestError::Lasting("the address is no URL".to_owned()))
}

async fn connect(url: &Url, tls: &Tls) -> Result<Connection, RequestError> {
    let host = match url.host() {
        Some(Host::Domain(name)) => name.to_owned(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
        None => return Err(RequestError::Lasting("the address has no host".to_owned())),
    };
    let port = url.port_or_known_default().unwrap_or(443);
    let limits =
        Limits { received_max: PART_BYTES + FRAMING_BYTES_MAX, body_max: PART_BYTES, kept_max: PART_BYTES };
    let opened = async {
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(|error| error.to_string())?;
        let tls = (url.scheme() == "https").then_some((tls, host.as_str()));
        Connection::open(stream, tls, limits).await.map_err(|error| error.to_string())
    };
    let timeout = || format!("no connection within {} s", CONNECT_TIMEOUT.as_secs());
    let opened = tokio::time::timeout(CONNECT_TIMEOUT, opened).await.unwrap_or_else(|_| Err(timeout()));
    opened.map_err(|error| RequestError::Passing(format!("{host}:{port}: {error}")))
}

impl From<RequestError> for BackupError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Passing(text) | RequestError::Lasting(text) => {
                Self::Remote(format!("the object store: {text}"))
            }
            RequestError::Missing => Self::Remote("the object store: there is no such object".to_owned()),
        }
    }
}

/// The keys and ids of a list of uploads, of keys that begin with a text. A store may list others, too, such
/// as those of another program.
fn uploads_of<'a>(text: &'a str, prefix: &str) -> Vec<(&'a str, &'a str)> {
    let uploads = text.split("<Upload>").skip(1);
    let uploads = uploads.filter_map(|upload| Some((element(upload, "Key")?, element(upload, "UploadId")?)));
    uploads.filter(|(key, _)| key.starts_with(prefix)).collect()
}

/// The text of the first element of a name. The elements around it differ between object stores.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(content, _)| content)
}

fn not_s3(what: &str) -> BackupError {
    BackupError::Remote(format!("the object store answered {what} as S3 does not: is --s3-endpoint right?"))
}

/// The beginning of an answer, on one line.
fn excerpt(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(EXCERPT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uploads_of_other_programs_are_left_alone() {
        let text = "<ListMultipartUploadsResult><Prefix>a/</Prefix>\
            <Upload><Key>a/archive/1</Key><UploadId>one</UploadId></Upload>\
            <Upload><UploadId>two</UploadId><Initiator/><Key>b/archive/1</Key></Upload>\
            <Upload><Initiator/><UploadId>three</UploadId><Key>a/2</Key></Upload></ListMultipartUploadsResult>";
        assert_eq!(uploads_of(text, "a/"), [("a/archive/1", "one"), ("a/2", "three")]);
        assert_eq!(uploads_of("<Error/>", "a/"), []);
    }
}
