-- question: Which files of evaluations are read where they lie, and how?
-- parameters:
--   $sources: VARCHAR[], names of evaluations in small letters; NULL for all
-- columns: source, file, n_bytes, modified_ns, digest, attached_at (as text), model_column, subtask_column, model_name,
--   subtask_name, table_name
SELECT source, file, n_bytes, modified_ns, digest, strftime(attached_at, '%Y-%m-%d %H:%M') AS attached_at, model_column,
       subtask_column, model_name, subtask_name, table_name
FROM attached_file
WHERE $sources IS NULL OR list_contains($sources::VARCHAR[], lower(source))
ORDER BY source, rowid
