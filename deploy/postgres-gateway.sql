-- A role for the gateway's hosts that reads and writes the ledger and cannot change its tables.
-- As the ledger's owner, before the first `breakeven ledger migrate`:
--   psql "$OWNER" -v gateway=breakeven_gateway -v password="'...'" -f deploy/postgres-gateway.sql
-- From then on schemas are changed by `breakeven ledger migrate` as the owner alone.
CREATE ROLE :gateway LOGIN PASSWORD :password NOSUPERUSER NOCREATEDB NOCREATEROLE;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO :gateway;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO :gateway;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO :gateway;
ALTER DEFAULT PRIVILEGES IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :gateway;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO :gateway;
