-- question: What are the views and macros of this database made of?
-- parameters: none
-- columns: schema, name (both in small letters), definition (SQL)
SELECT lower(schema_name) AS schema, lower(view_name) AS name, sql AS definition
FROM duckdb_views()
WHERE NOT internal AND NOT temporary
UNION ALL
SELECT lower(schema_name), lower(function_name), macro_definition
FROM duckdb_functions()
WHERE NOT internal AND macro_definition IS NOT NULL
