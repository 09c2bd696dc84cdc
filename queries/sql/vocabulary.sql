-- question: Which words may a statement be made of?
-- parameters: none
-- columns: word, kind (table, view, macro, column, function or keyword), relation (whose column it is; NULL for others),
--   parameters (of a macro; NULL for others)
-- units: none
SELECT CASE schema_name WHEN 'main' THEN table_name ELSE schema_name || '.' || table_name END AS word, 'table' AS kind,
       NULL AS relation, NULL AS parameters
FROM duckdb_tables()
WHERE NOT internal
UNION ALL
SELECT CASE schema_name WHEN 'main' THEN view_name ELSE schema_name || '.' || view_name END, 'view', NULL, NULL
FROM duckdb_views()
WHERE NOT internal
UNION ALL
SELECT DISTINCT function_name, 'macro', NULL, array_to_string(parameters, ', ')
FROM duckdb_functions()
WHERE NOT internal AND function_type IN ('table_macro', 'macro')
UNION ALL
SELECT column_name, 'column', CASE schema_name WHEN 'main' THEN table_name ELSE schema_name || '.' || table_name END, NULL
FROM duckdb_columns()
WHERE NOT internal
UNION ALL
SELECT DISTINCT function_name, 'function', NULL, NULL
FROM duckdb_functions()
WHERE internal AND function_type IN ('scalar', 'aggregate') AND regexp_full_match(function_name, '[a-z]\w*')
UNION ALL
SELECT keyword_name, 'keyword', NULL, NULL
FROM duckdb_keywords()
ORDER BY kind, word, relation
