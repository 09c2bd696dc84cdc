-- question: Which tables does a DuckDB file have?
-- parameters: none
-- columns: schema_name, table_name
SELECT schema_name, table_name
FROM duckdb_tables()
WHERE NOT internal AND NOT temporary
ORDER BY schema_name <> 'main', schema_name, table_name
