//! The logos of applications.

use domain::ClientId;
use domain::picture::Picture;

use super::credential_changes::Dependency;
use crate::{StoreError, Tx, params};

const PUT: &str = "
    INSERT INTO application_logos (client_id, media_type, base64) VALUES ($1, $2, $3)
    ON CONFLICT (client_id) DO UPDATE SET media_type = excluded.media_type, base64 = excluded.base64";

const DELETE: &str = "DELETE FROM application_logos WHERE client_id = $1";

const NAME: &str = "UPDATE applications SET logo_version = $2 WHERE client_id = $1";

const FIND: &str = "
    SELECT l.media_type, l.base64 FROM application_logos l JOIN applications a ON a.client_id = l.client_id
    WHERE l.client_id = $1 AND a.purging = FALSE";

impl Tx {
    /// Replaces the logo of an application, or removes it.
    pub async fn put_application_logo(
        &mut self,
        client_id: &ClientId,
        logo: Option<&Picture>,
    ) -> Result<(), StoreError> {
        match logo {
            Some(logo) => self.execute(PUT, params![client_id, logo.media_type(), logo.base64()]).await?,
            None => self.execute(DELETE, params![client_id]).await?,
        };
        self.credentials_changed(Dependency::Application(client_id));
        self.execute(NAME, params![client_id, logo.map(Picture::version)]).await?;
        Ok(())
    }

    /// The logo of an application.
    pub async fn application_logo(&mut self, client_id: &ClientId) -> Result<Option<Picture>, StoreError> {
        let found: Option<(String, String)> = self.fetch_optional(FIND, params![client_id]).await?;
        Ok(found.and_then(|(media_type, base64)| Picture::stored(&media_type, &base64)))
    }
}
