-- A role for the dashboard that reads the ledger and can change nothing. As the ledger's owner:
--   psql "$LEDGER" -v reader=breakeven_reader -v password="'...'" -f deploy/postgres-reader.sql
-- Then name its address by `dashboard.reader_url_env`. Run it again after an upgrade that brings
-- new tables, or leave that to the default privileges at the end.
CREATE ROLE :reader LOGIN PASSWORD :password NOSUPERUSER NOCREATEDB NOCREATEROLE CONNECTION LIMIT 40;
ALTER ROLE :reader SET default_transaction_read_only = on;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO :reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO :reader;
-- What people asked and were answered, kept for batches and repeated requests, is not for it.
REVOKE SELECT ON files, file_chunks, batch_lines, outgoing_lines, submissions, kept_answers
    FROM :reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO :reader;
