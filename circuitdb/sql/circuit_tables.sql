-- question: Which tables have rows of single circuits?
-- parameters: none
-- columns: table_name
SELECT table_name
FROM duckdb_columns()
WHERE schema_name = 'main' AND column_name = 'circuit_id' AND table_name <> 'imported_hard_circuit'
  AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary)
ORDER BY table_name <> 'circuit', table_name
