-- question: Which columns of the attached database `source` name a row of another table?
-- columns: name (of the table), referring (its column), parent, key (the parent's column)
WITH reference(referring, parent, key) AS (
    VALUES ('circuit_id', 'circuit', 'circuit_id'), ('data_circuit_id', 'circuit', 'circuit_id'),
           ('graph_id', 'graph', 'graph_id'), ('model_id', 'model', 'model_id'),
           ('task_id', 'task', 'task_id'), ('subtask_id', 'subtask', 'subtask_id'),
           ('hard_id', 'imported_hard_circuit', 'hard_id')
), named(name, referring, parent, key) AS (
    VALUES ('imported_evaluation', 'source', 'evaluation_source', 'source'),
           ('attached_file', 'source', 'evaluation_source', 'source')
)
SELECT c.table_name AS name, r.referring, r.parent, r.key
FROM duckdb_columns() AS c
JOIN duckdb_tables() AS t USING (database_name, schema_name, table_name)
JOIN reference AS r ON r.referring = c.column_name
WHERE c.database_name = 'source' AND c.schema_name = 'main' AND c.table_name <> r.parent
UNION ALL
SELECT name, referring, parent, key FROM named
ORDER BY ALL
