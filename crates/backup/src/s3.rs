//! Backups in an S3-like object store: `PREFIX/NAME/stagedoor.db` and `PREFIX/NAME/manifest.json`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use bytes::Bytes;
use rusty_s3::{Bucket, Credentials, UrlStyle};
use sha2::{Digest, Sha256};
use url::{Host, Url};

use crate::listing::{BrokenBackup, ListedBackup, Listing, OtherStore};
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::report::{OnReport, Phase};
use crate::s3_client::{Client, PART_BYTES, PARTS_MAX};
use crate::{Backup, BackupError, DATA_FILE, files, folder};

/// The beginning of an address.
pub const S3_SCHEME: &str = "s3://";

/// Where backups are: `s3://BUCKET/PREFIX`. Its access keys are in no output.
#[derive(Clone)]
pub struct S3Place {
    bucket: Bucket,
    credentials: Credentials,
    prefix: String,
}

/// How an object store is reached.
#[derive(Clone)]
pub struct S3Access {
    /// Its address; `None` for that of AWS in the region.
    pub endpoint: Option<String>,
    /// Its region.
    pub region: String,
    /// The id of the access key.
    pub key_id: String,
    /// The secret of the access key.
    pub secret: String,
    /// The token of a temporary access key.
    pub token: Option<String>,
}

impl fmt::Debug for S3Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("S3Place").field(&self.to_string()).finish()
    }
}

impl fmt::Display for S3Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{S3_SCHEME}{}/{}", self.bucket.name(), self.prefix)
    }
}

impl S3Place {
    /// Reads an address.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn parse(address: &str, access: S3Access) -> Result<Self, String> {
        let path = address.strip_prefix(S3_SCHEME).ok_or("the address must begin with s3://")?;
        let (name, prefix) = path.split_once('/').unwrap_or((path, ""));
        let is_plain = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'/'))
        };
        if name.is_empty() || !is_plain(path) {
            return Err(format!(
                "{address}: an address is s3://BUCKET/PREFIX of letters, digits, -, . and _"
            ));
        }
        let S3Access { endpoint, region, key_id, secret, token } = access;
        let style = if endpoint.is_some() { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let url = Url::parse(&endpoint).map_err(|error| format!("--s3-endpoint: {error}"))?;
        if url.scheme() != "https" && !is_loopback(&url) {
            return Err("--s3-endpoint: use https; http is for a store on this machine".to_owned());
        }
        let bucket = Bucket::new(url, style, name.to_owned(), region);
        let bucket = bucket.map_err(|error| format!("--s3-endpoint: {error}"))?;
        let credentials = match token {
            Some(token) => Credentials::new_with_token(key_id, secret, token),
            None => Credentials::new(key_id, secret),
        };
        Ok(Self { bucket, credentials, prefix: prefix.trim_matches('/').to_owned() })
    }

    /// The backups of the place.
    ///
    /// # Errors
    /// [`BackupError::Remote`].
    pub async fn list(&self) -> Result<Listing, BackupError> {
        let mut client = self.client()?;
        let mut listing = Listing::default();
        for (name, data) in self.names(&mut client).await?.complete {
            let key = self.key(&name, MANIFEST_FILE);
            // Another call may delete an old one meanwhile.
            let Some(text) = client.get(&key, 0).await? else { continue };
            let manifest = Manifest::of(&text, &key);
            let unknown = manifest.as_ref().map_or(0, |manifest| manifest.bytes);
            let bytes = data.map(|bytes| bytes.unwrap_or(unknown));
            let address = format!("{S3_SCHEME}{}/{}", self.bucket.name(), self.under(&name));
            listing.add((name.clone(), address), manifest, (&self.key(&name, DATA_FILE), bytes));
        }
        Ok(listing)
    }

    /// Whether the store answers. A backup is not taken for one that does not.
    ///
    /// # Errors
    /// [`BackupError::Remote`], within seconds.
    pub async fn reach(&self) -> Result<(), BackupError> {
        self.client()?.reach(&self.under("reach")).await
    }

    /// Copies a backup of a folder into the store, reads it again, and compares it with its manifest. The
    /// manifest comes last: without a manifest there is no backup. Gives the address.
    ///
    /// # Errors
    /// [`BackupError`]. The objects of the incomplete backup are deleted, as far as the store is reached.
    pub async fn store(&self, backup: &Backup, on_report: OnReport<'_>) -> Result<String, BackupError> {
        let mut client = self.client()?;
        let name = backup.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let key = self.key(name, DATA_FILE);
        let stored = async {
            let path = backup.folder.join(DATA_FILE);
            let file = File::open(&path).map_err(|error| BackupError::file("cannot read", &path, &error));
            let from = Source { content: &mut file?, path: &path, bytes: backup.manifest.bytes };
            upload(&mut client, from, &key, on_report).await?;
            let mut hash = Sha256::new();
            let bytes = download(&mut client, &key, on_report, |part| {
                hash.update(part);
                Ok(())
            });
            let bytes = bytes.await?;
            check(&key, &backup.manifest, bytes, hash)?;
            let path = backup.folder.join(MANIFEST_FILE);
            let text =
                std::fs::read(&path).map_err(|error| BackupError::file("cannot read", &path, &error))?;
            client.put(&self.key(name, MANIFEST_FILE), text.into()).await
        };
        if let Err(error) = stored.await {
            let _ = client.delete(&key).await;
            return Err(error);
        }
        Ok(format!("{S3_SCHEME}{}/{}", self.bucket.name(), self.under(name)))
    }

    /// Copies the backup of this address, or the latest one below it, into a folder that exists. Gives the
    /// copy, the address of the backup, and those that cannot be used.
    ///
    /// # Errors
    /// [`BackupError::Refused`] if there is none, or if the place has those of several stores;
    /// [`BackupError::Damaged`] if it is not what its manifest says, or a newer one cannot be used.
    pub async fn fetch(
        &self,
        into: &Path,
        other: OtherStore,
        on_report: OnReport<'_>,
    ) -> Result<(Backup, String, Vec<BrokenBackup>), BackupError> {
        let mut client = self.client()?;
        let (place, broken) = if client.get(&self.own_key(MANIFEST_FILE), 0).await?.is_some() {
            (self.clone(), Vec::new())
        } else {
            let listing = self.list().await?;
            let latest = listing.latest(&self.to_string(), other)?;
            (Self { prefix: self.under(&latest.name), ..self.clone() }, listing.broken)
        };
        let manifest = client.get(&place.own_key(MANIFEST_FILE), 0).await?.unwrap_or_default();
        files::write_new(&into.join(MANIFEST_FILE), &manifest)?;
        let manifest = Manifest::read(into)?;
        let (key, path) = (place.own_key(DATA_FILE), into.join(DATA_FILE));
        let failed = |error: std::io::Error| BackupError::file("cannot write", &path, &error);
        let created = OpenOptions::new().write(true).create_new(true).mode(files::PRIVATE_FILE).open(&path);
        let (mut file, mut hash) = (created.map_err(failed)?, Sha256::new());
        let bytes = download(&mut client, &key, on_report, |part| {
            hash.update(part);
            file.write_all(part).map_err(failed)
        });
        let bytes = bytes.await?;
        check(&key, &manifest, bytes, hash)?;
        Ok((Backup { folder: into.to_owned(), manifest }, place.to_string(), broken))
    }

    /// Deletes backups, and what interrupted ones left before the newest.
    ///
    /// # Errors
    /// [`BackupError::Remote`].
    pub(crate) async fn delete(&self, surplus: &[&ListedBackup]) -> Result<(), BackupError> {
        let mut client = self.client()?;
        for ListedBackup { name, .. } in surplus {
            client.delete(&self.key(name, MANIFEST_FILE)).await?;
            client.delete(&self.key(name, DATA_FILE)).await?;
        }
        let Names { complete, partial } = self.names(&mut client).await?;
        let is_interrupted = |name: &str| complete.last().is_some_and(|(newest, _)| name < newest.as_str());
        for name in partial.iter().filter(|name| is_interrupted(name)) {
            client.delete(&self.key(name, DATA_FILE)).await?;
        }
        let start = self.under("").len();
        let is_of_interrupted = |key: &str| {
            key.get(start..)
                .and_then(|name| name.split_once('/'))
                .is_some_and(|(name, _)| is_interrupted(name))
        };
        client.abort_uploads(&self.under(folder::PREFIX), is_of_interrupted).await;
        Ok(())
    }

    /// The objects of the place, by their names below its prefix.
    pub(crate) fn objects(&self) -> Result<Objects, BackupError> {
        Ok(Objects { client: self.client()?, place: self.clone() })
    }

    fn client(&self) -> Result<Client, BackupError> {
        Client::new(self.bucket.clone(), self.credentials.clone())
    }

    async fn names(&self, client: &mut Client) -> Result<Names, BackupError> {
        let objects = client.objects(&self.under(folder::PREFIX)).await?;
        let start = self.under("").len();
        let (mut manifests, mut data_files) = (Vec::new(), BTreeMap::new());
        for (key, bytes) in &objects {
            match key.get(start..).and_then(|key| key.split_once('/')) {
                Some((name, MANIFEST_FILE)) => manifests.push(name.to_owned()),
                Some((name, DATA_FILE)) => {
                    data_files.insert(name.to_owned(), *bytes);
                }
                _ => {}
            }
        }
        manifests.sort();
        let complete = manifests.into_iter().map(|name| {
            let bytes = data_files.remove(&name);
            (name, bytes)
        });
        Ok(Names { complete: complete.collect(), partial: data_files.into_keys().collect() })
    }

    /// A name below the prefix.
    fn under(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }

    fn key(&self, name: &str, file: &str) -> String {
        self.under(&format!("{name}/{file}"))
    }

    fn own_key(&self, file: &str) -> String {
        self.under(file)
    }
}

/// The objects of a place.
pub(crate) struct Objects {
    client: Client,
    place: S3Place,
}

/// What an object is written from.
pub(crate) struct Source<'a> {
    pub content: &'a mut (dyn Read + Send),
    /// Where it is, for errors.
    pub path: &'a Path,
    /// The number of its bytes.
    pub bytes: u64,
}

/// An object that is written in parts.
pub(crate) struct PartedObject {
    key: String,
    upload: String,
    tags: Vec<String>,
}

impl Objects {
    /// The names that begin with a text.
    pub async fn names(&mut self, beginning: &str) -> Result<Vec<String>, BackupError> {
        let keys = self.client.keys(&self.place.under(beginning)).await?;
        let start = self.place.under("").len();
        Ok(keys.iter().filter_map(|key| key.get(start..).map(str::to_owned)).collect())
    }

    /// Writes a small object.
    pub async fn put(&mut self, name: &str, content: Bytes) -> Result<(), BackupError> {
        self.client.put(&self.place.under(name), content).await
    }

    /// Writes what is read.
    pub async fn put_all(&mut self, name: &str, from: Source<'_>) -> Result<(), BackupError> {
        upload(&mut self.client, from, &self.place.under(name), &mut |_, _, _| {}).await
    }

    /// Reads an object part by part.
    pub async fn read(
        &mut self,
        name: &str,
        on_report: OnReport<'_>,
        use_part: impl FnMut(&[u8]) -> Result<(), BackupError> + Send,
    ) -> Result<u64, BackupError> {
        download(&mut self.client, &self.place.under(name), on_report, use_part).await
    }

    /// Reads a small object; `None` if there is no such object.
    pub async fn get(&mut self, name: &str) -> Result<Option<Vec<u8>>, BackupError> {
        self.client.get(&self.place.under(name), 0).await
    }

    /// Deletes an object, if it is there.
    pub async fn delete(&mut self, name: &str) -> Result<(), BackupError> {
        self.client.delete(&self.place.under(name)).await
    }

    /// Begins an object of several parts.
    pub async fn begin(&mut self, name: &str) -> Result<PartedObject, BackupError> {
        let key = self.place.under(name);
        let upload = self.client.begin_parts(&key).await?;
        Ok(PartedObject { key, upload, tags: Vec::new() })
    }

    /// Writes the next part.
    pub async fn add(&mut self, object: &mut PartedObject, part: Bytes) -> Result<(), BackupError> {
        let number = u16::try_from(object.tags.len() + 1)
            .map_err(|_| BackupError::Remote(format!("{} has too many parts", object.key)))?;
        object.tags.push(self.client.put_part(&object.key, &object.upload, number, part).await?);
        Ok(())
    }

    /// Completes the object.
    pub async fn end(&mut self, object: PartedObject) -> Result<(), BackupError> {
        self.client.end_parts(&object.key, &object.upload, &object.tags).await
    }

    /// Deletes the parts of objects that were never completed, whose names begin with a text.
    pub async fn abort_uploads(&mut self, beginning: &str) {
        let beginning = self.place.under(beginning);
        self.client.abort_uploads(&beginning, |_| true).await;
    }

    /// Deletes the parts of an object that is not completed.
    pub async fn abort(&mut self, object: PartedObject) {
        let _ = self.client.abort_parts(&object.key, &object.upload).await;
    }
}

/// The names of backups, in the order of their times.
struct Names {
    /// With their data files, if they are there, and the sizes of these, if the store says them.
    complete: Vec<(String, Option<Option<u64>>)>,
    /// Those without a manifest.
    partial: Vec<String>,
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Writes what is read as one object: in parts, if it is larger than a part.
async fn upload(
    client: &mut Client,
    mut from: Source<'_>,
    key: &str,
    on_report: OnReport<'_>,
) -> Result<(), BackupError> {
    let bytes = from.bytes;
    if bytes <= PART_BYTES as u64 {
        let part = next_part(&mut from, PART_BYTES)?;
        return client.put(key, part).await;
    }
    let part_bytes = (bytes.div_ceil(PARTS_MAX) as usize).max(PART_BYTES);
    let upload = client.begin_parts(key).await?;
    let written = async {
        let (mut tags, mut done) = (Vec::new(), 0);
        for number in 1.. {
            let part = next_part(&mut from, part_bytes)?;
            if part.is_empty() {
                break;
            }
            done += part.len() as u64;
            tags.push(client.put_part(key, &upload, number, part).await?);
            on_report(Phase::Upload, DATA_FILE, done);
        }
        client.end_parts(key, &upload, &tags).await
    };
    if let Err(error) = written.await {
        let _ = client.abort_parts(key, &upload).await;
        return Err(error);
    }
    Ok(())
}

/// The next bytes of a source: as many as wanted, or all that are left.
fn next_part(from: &mut Source<'_>, bytes: usize) -> Result<Bytes, BackupError> {
    let mut part = Vec::with_capacity(bytes);
    let read = (&mut *from.content).take(bytes as u64).read_to_end(&mut part);
    read.map_err(|error| BackupError::file("cannot read", from.path, &error))?;
    Ok(part.into())
}

/// Reads an object part by part, and gives its length.
async fn download(
    client: &mut Client,
    key: &str,
    on_report: OnReport<'_>,
    mut use_part: impl FnMut(&[u8]) -> Result<(), BackupError> + Send,
) -> Result<u64, BackupError> {
    let mut done = 0;
    loop {
        let part = client.get(key, done).await?;
        let part = part.ok_or_else(|| BackupError::Damaged(format!("the object {key} is missing")))?;
        use_part(&part)?;
        done += part.len() as u64;
        on_report(Phase::Download, DATA_FILE, done);
        if part.len() < PART_BYTES {
            return Ok(done);
        }
    }
}

fn check(key: &str, manifest: &Manifest, bytes: u64, hash: Sha256) -> Result<(), BackupError> {
    let sha256 = files::hex(hash);
    if bytes == manifest.bytes && sha256 == manifest.sha256 {
        return Ok(());
    }
    Err(BackupError::Damaged(format!(
        "the object {key} is damaged: it has {bytes} bytes and the SHA-256 {sha256}, and its manifest says {} bytes and {}",
        manifest.bytes, manifest.sha256
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(address: &str, endpoint: Option<&str>) -> Result<S3Place, String> {
        let access = S3Access {
            endpoint: endpoint.map(str::to_owned),
            region: "eu-west-1".to_owned(),
            key_id: "key".to_owned(),
            secret: "secret-of-the-key".to_owned(),
            token: None,
        };
        S3Place::parse(address, access)
    }

    #[test]
    fn an_address_has_a_bucket_and_a_prefix() {
        let place = place("s3://games/backups/a/", None).unwrap();
        assert_eq!(place.to_string(), "s3://games/backups/a");
        assert_eq!(place.key("x", "y"), "backups/a/x/y");
        assert_eq!(place.bucket.base_url().as_str(), "https://games.s3.eu-west-1.amazonaws.com/");
        assert!(!format!("{place:?}").contains("secret"));
        for wrong in ["s3://", "s3:///a", "s3://a b", "s3://a/?x", "/a", "s3://a/%2e"] {
            assert!(super::tests::place(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn plain_http_is_for_this_machine() {
        for good in ["http://127.0.0.1:9000", "http://localhost:9000", "https://s3.example.com"] {
            place("s3://a", Some(good)).unwrap();
        }
        for wrong in ["http://s3.example.com", "http://10.0.0.1", "ftp://127.0.0.1", "s3.example.com", ""] {
            assert!(place("s3://a", Some(wrong)).is_err(), "{wrong}");
        }
    }
}
