-- question: Which tables has the attached database `source`, the small ones first?
-- columns: name (quoted), bare (unquoted, its schema in front if it is not main)
SELECT '"' || replace(schema_name, '"', '""') || '"."' || replace(table_name, '"', '""') || '"' AS name,
       CASE schema_name WHEN 'main' THEN table_name ELSE schema_name || '.' || table_name END AS bare
FROM duckdb_tables()
WHERE database_name = 'source'
ORDER BY estimated_size, name
