-- question: What columns does this table or view have?
-- parameters:
--   $name: VARCHAR, the table or view
-- columns: column, type, nullable (false where NULL is refused; NULL for a view), comment
-- units: none
SELECT c.column_name AS column, c.data_type AS type,
       CASE WHEN c.table_name IN (SELECT table_name FROM duckdb_tables()) THEN c.is_nullable END AS nullable, c.comment
FROM duckdb_columns() AS c
WHERE NOT c.internal AND $name IN (c.table_name, c.schema_name || '.' || c.table_name)
ORDER BY c.column_index
