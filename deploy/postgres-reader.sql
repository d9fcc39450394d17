-- A role for the dashboard that reads the ledger and can change nothing. As the ledger's owner:
--   psql "$LEDGER" -v reader=breakeven_reader -v password="'...'" -f deploy/postgres-reader.sql
-- Then name its address by `dashboard.reader_url_env`. After an upgrade that brings new tables run the
-- part below CREATE ROLE again.
CREATE ROLE :reader LOGIN PASSWORD :password NOSUPERUSER NOCREATEDB NOCREATEROLE CONNECTION LIMIT 40;
ALTER ROLE :reader SET default_transaction_read_only = on;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO :reader;
-- By name: a table that is not here is closed. What people asked and were answered, kept for batches,
-- repeated requests and conversations (files, file_chunks, batch_lines, outgoing_lines, submissions,
-- kept_answers, stored_objects), is not for it; nor is how far events and reports were sent
-- (event_cursors, report_turns).
ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE SELECT ON TABLES FROM :reader;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM :reader;
GRANT SELECT ON
    alembic_version, attempt_legs, attempts, batches, budget_alerts, budget_versions, budget_windows, budgets,
    cache_hits, capacity, catalog, claims, compared, condensed_hits, condensed_postings,
    condensed_refusals, condensings,
    config_versions, decisions, engine_sample_hours, engine_samples, entered,
    fleet_changes, fleet_hours, fleet_instances, fleet_leases, fleet_plans, fleet_pools,
    gpu_contracts,
    gpu_hour_teams, gpu_hours, gpu_types, grants, holds, hosts, invoice_items, invoices,
    journal_findings, journal_positions, key_changes, keys, meta, model_routes, organisations,
    outgoing_batches, overrides, policy_sets, postings, price_imports, price_versions,
    quarantine, rate_accounts, rate_hosts, rate_parts, refusals, register_entries,
    retired_bookings, retired_holds, retired_use, retirements, rollup_cells,
    rollup_compared_days, rollup_compared_hours, rollup_compared_quarters,
    rollup_compared_weeks, rollup_comparisons, rollup_days, rollup_hours, rollup_key_days,
    rollup_key_hours, rollup_keys, rollup_load_days, rollup_load_hours, rollup_loads,
    rollup_packing, rollup_position, rollup_quarters, rollup_tag_days, rollup_tag_hours,
    rollup_tagging, rollup_tags, rollup_waiting, rollup_weeks, round_trips, seal_annexes, seal_marks, seals,
    spend_history, stored_bytes, teams, users, verifications
    TO :reader;
-- Of stored conversations how much each team has: `ledger verify` adds the sizes up.
GRANT SELECT (team_id, size) ON stored_objects TO :reader;
