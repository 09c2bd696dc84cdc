-- question: Which evaluations from elsewhere are kept as the tables that they came as?
-- parameters: none
-- columns: table_name
SELECT table_name
FROM duckdb_tables()
WHERE schema_name = 'evals' AND NOT temporary
ORDER BY table_name
