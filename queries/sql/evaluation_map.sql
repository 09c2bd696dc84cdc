-- question: What are the names in added evaluations taken for, and what of ours have they nothing of?
-- parameters:
--   $source: VARCHAR, the name of the evaluations; NULL for all
-- columns: source, kind (model or subtask), external (name in the files; NULL for one of ours that they have no row of),
--   internal (ours; NULL for a name that is taken for nothing), how (given, same or alike), n_rows, reason
-- units: counts
WITH ours AS (
    SELECT DISTINCT k.kind, k.shown, k.model_id, k.subtask_id, k.task_id
    FROM known_names AS k
    JOIN circuit AS c ON c.model_id = k.model_id OR c.subtask_id = k.subtask_id
), missing AS (
    SELECT s.source, o.kind, o.shown
    FROM evaluation_source AS s
    CROSS JOIN ours AS o
    ANTI JOIN (SELECT * FROM evaluation_names WHERE internal IS NOT NULL) AS n  -- few of the many names of files
      ON n.source = s.source AND n.kind = o.kind
     AND (n.model_id = o.model_id OR n.subtask_id = o.subtask_id OR (n.task_id = o.task_id AND n.subtask_id IS NULL))
)
SELECT source, kind, external, internal, how, n_rows, reason
FROM evaluation_names
WHERE $source IS NULL OR source = $source
UNION ALL
SELECT source, kind, NULL, shown, NULL, 0, 'the files have no row of it'
FROM missing
WHERE $source IS NULL OR source = $source
ORDER BY source, kind, internal IS NULL, external IS NULL, internal, external
