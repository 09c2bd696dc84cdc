-- question: Is evals.NAME a table or a view?
-- parameters:
--   $name: VARCHAR, its name, small and capital letters told apart
-- columns: kind (TABLE or VIEW); no row where nothing is called exactly so
SELECT 'TABLE' AS kind
FROM duckdb_tables()
WHERE database_name = current_database() AND schema_name = 'evals' AND table_name = $name
UNION ALL
SELECT 'VIEW'
FROM duckdb_views()
WHERE database_name = current_database() AND schema_name = 'evals' AND view_name = $name
