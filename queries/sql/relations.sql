-- question: What tables, views and macros does this database have?
-- parameters: none
-- columns: name, kind (table, view or macro), columns (how many; NULL for a macro), comment
-- units: none
SELECT CASE schema_name WHEN 'main' THEN table_name ELSE schema_name || '.' || table_name END AS name, 'table' AS kind, column_count AS columns, comment
FROM duckdb_tables()
WHERE NOT internal
UNION ALL
SELECT view_name, 'view', column_count, comment
FROM duckdb_views()
WHERE NOT internal
UNION ALL
SELECT function_name || '(' || array_to_string(parameters, ', ') || ')', 'macro', NULL, comment
FROM duckdb_functions()
WHERE NOT internal AND function_type = 'table_macro'
ORDER BY CASE kind WHEN 'table' THEN 1 WHEN 'view' THEN 2 ELSE 3 END, name
