//! Where backups are: a folder, or an S3-like object store.

use std::path::{Path, PathBuf};

use backup::archive::ArchivePlace;
use backup::{
    Backup, BackupError, BrokenBackup, OnReport, OtherStore, S3_SCHEME, S3Access, S3Place, WORK_PREFIX,
};
use clap::Args;
use commands::secret;
use temporary_folder::TemporaryFolder;

/// How an object store is reached.
#[derive(Debug, Args)]
pub struct S3AccessOptions {
    /// The object store of an s3:// address, unless it is AWS: https://minio.example.com:9000. Its access
    /// key is in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_SECRET_ACCESS_KEY_FILE), with
    /// AWS_SESSION_TOKEN.
    #[arg(long, value_name = "URL", env = "AWS_ENDPOINT_URL_S3")]
    s3_endpoint: Option<String>,

    /// The region of the object store.
    #[arg(long, value_name = "REGION", env = "AWS_REGION", default_value = "us-east-1")]
    s3_region: String,
}

/// How an object store is reached, and where its backups are on the way.
#[derive(Debug, Args)]
pub struct S3Options {
    /// The object store.
    #[command(flatten)]
    access: S3AccessOptions,

    /// Where backups to and from an object store are kept meanwhile, and where a drill makes its temporary
    /// folder (default: the system's). It needs room for the data file, a drill for two.
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
}

/// Where backups are.
#[derive(Clone)]
pub(super) enum BackupPlace {
    Folder(PathBuf),
    S3(Box<S3Place>),
}

impl S3AccessOptions {
    /// The place of an address or a path.
    pub fn place(&self, text: &str) -> Result<BackupPlace, String> {
        if !text.starts_with(S3_SCHEME) {
            return Ok(BackupPlace::Folder(PathBuf::from(text)));
        }
        let needed = |name| {
            let value = secret(name, std::env::var(name).ok().filter(|value| !value.is_empty()).as_deref())?;
            value.ok_or_else(|| format!("{name} is missing: an s3:// address needs an access key"))
        };
        let access = S3Access {
            endpoint: self.s3_endpoint.clone(),
            region: self.s3_region.clone(),
            key_id: needed("AWS_ACCESS_KEY_ID")?,
            secret: needed("AWS_SECRET_ACCESS_KEY")?,
            token: std::env::var("AWS_SESSION_TOKEN").ok().filter(|token| !token.is_empty()),
        };
        Ok(BackupPlace::S3(Box::new(S3Place::parse(text, access)?)))
    }
}

impl S3Options {
    /// The place of an address or a path.
    pub fn place(&self, text: &str) -> Result<BackupPlace, String> {
        self.access.place(text)
    }

    /// The folder of a drill.
    pub fn work(&self) -> Option<&Path> {
        self.work.as_deref()
    }

    /// A folder for a backup on its way, deleted with the value.
    pub fn temporary_folder(&self) -> Result<TemporaryFolder, BackupError> {
        let parent = self.work.clone().unwrap_or_else(std::env::temp_dir);
        TemporaryFolder::create_in(&parent, WORK_PREFIX).map_err(|error| {
            BackupError::File(format!("cannot make a folder in {}: {error}", parent.display()))
        })
    }
}

/// A backup in a folder of this machine, and its address.
pub(super) struct FoundBackup {
    pub backup: Backup,
    pub address: String,
    /// Older backups of the place that cannot be used.
    pub broken: Vec<BrokenBackup>,
    /// Holds a backup of an object store, and is deleted with the value.
    _copy: Option<TemporaryFolder>,
}

impl BackupPlace {
    /// The archive of the same place.
    pub fn archive(self) -> ArchivePlace {
        match self {
            Self::Folder(folder) => ArchivePlace::Folder(folder),
            Self::S3(place) => ArchivePlace::S3(place),
        }
    }

    /// The backup of the place, or its latest one.
    pub async fn find(
        &self,
        options: &S3Options,
        other: OtherStore,
        on_report: OnReport<'_>,
    ) -> Result<FoundBackup, BackupError> {
        match self {
            Self::Folder(path) => {
                let (backup, broken) = backup::find(path, other)?;
                let address = backup.folder.display().to_string();
                Ok(FoundBackup { address, backup, broken, _copy: None })
            }
            Self::S3(place) => {
                let folder = options.temporary_folder()?;
                let (backup, address, broken) = place.fetch(folder.path(), other, on_report).await?;
                Ok(FoundBackup { backup, address, broken, _copy: Some(folder) })
            }
        }
    }
}
