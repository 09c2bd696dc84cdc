-- question: What has one of the attached databases `source` and `fresh` in its catalogue that the other has not, or has otherwise?
-- columns: name
WITH entry AS (
    SELECT database_name, schema_name || '.' || table_name AS name, comment, sql AS definition FROM duckdb_tables()
    UNION ALL
    SELECT database_name, schema_name || '.' || table_name || '.' || column_name, comment, data_type
    FROM duckdb_columns()
    WHERE NOT internal
    UNION ALL
    SELECT database_name, schema_name || '.' || view_name, comment, sql FROM duckdb_views() WHERE NOT internal
    UNION ALL
    SELECT database_name, schema_name || '.' || function_name, comment, macro_definition
    FROM duckdb_functions()
    WHERE NOT internal
    UNION ALL
    SELECT database_name, schema_name || '.' || index_name, comment, sql FROM duckdb_indexes()
    UNION ALL
    SELECT database_name, schema_name || '.' || sequence_name, comment, sql FROM duckdb_sequences()
)
SELECT DISTINCT name
FROM (
    SELECT name
    FROM entry
    GROUP BY name, comment, definition
    HAVING count(*) FILTER (database_name = 'source') <> count(*) FILTER (database_name = 'fresh')
)
ORDER BY name
