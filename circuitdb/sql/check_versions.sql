-- question: Which migrations were applied out of order, twice or not at all?
-- columns: subject (the version), what, recorded, found
SELECT version::VARCHAR AS subject, 'migration ' || name AS what, version::BIGINT AS recorded, place AS found
FROM (SELECT version, name, row_number() OVER (ORDER BY version, name) AS place FROM schema_version)
WHERE version <> place
ORDER BY version
