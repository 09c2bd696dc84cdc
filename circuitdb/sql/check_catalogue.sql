-- question: Which columns and macros of this version's schema, made in the attached database `fresh`, does `source` not have?
-- columns: subject, what, recorded, found
WITH entry AS (
    SELECT database_name, table_name || '.' || column_name AS name, data_type
    FROM duckdb_columns()
    WHERE NOT internal
    UNION ALL
    SELECT DISTINCT database_name, function_name, NULL FROM duckdb_functions() WHERE NOT internal
)
SELECT f.name AS subject, CASE WHEN s.name IS NULL THEN 'not there' ELSE 'of another type' END AS what,
       f.data_type AS recorded, s.data_type AS found
FROM entry AS f
LEFT JOIN entry AS s ON s.database_name = 'source' AND s.name = f.name
WHERE f.database_name = 'fresh' AND (s.name IS NULL OR s.data_type IS DISTINCT FROM f.data_type)
ORDER BY f.name
