-- Applications that an admin offered to the person with a login. An application has one offer at most. It names a login,
-- whether or not it exists: the page does not tell who has an account. Only an account that was there before the offer
-- can accept it.
CREATE TABLE application_offers (
    client_id  TEXT PRIMARY KEY REFERENCES applications (client_id) ON DELETE CASCADE,
    login      TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX application_offers_of_login ON application_offers (login);
