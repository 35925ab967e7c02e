-- name: schema_version
-- The newest migration that was applied.
SELECT max(version) FROM schema_versions

-- name: record_version
-- Note a migration, in the transaction that carried it out.
INSERT INTO schema_versions (version) VALUES (:version)

-- name: get_fact
-- One remembered value.
SELECT value FROM facts WHERE name = :name

-- name: set_fact
-- Remember one value.
INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value
