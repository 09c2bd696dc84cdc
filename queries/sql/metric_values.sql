-- question: What is the value of a metric for the model and subtask of each of these circuits, and for its whole task?
-- parameters:
--   $circuits: INTEGER[], the circuits
--   $source: VARCHAR, circuitdb or the name of added evaluations
--   $metric: VARCHAR, the metric
--   $filter: VARCHAR, how the answer was read, '' where the file does not say; NULL for any
-- columns: circuit_id, whole_task (true for a value of the task, not of the subtask), value, filter, is_group
-- units: the metric's own
SELECT c.circuit_id, e.circuit_id IS NULL AND e.subtask_id IS NULL AS whole_task, e.value, e.filter, e.is_group
FROM circuit AS c
JOIN subtask AS s USING (subtask_id)
JOIN evaluations AS e
  ON e.model_id = c.model_id
 AND CASE WHEN e.circuit_id IS NOT NULL THEN e.circuit_id = c.circuit_id
          WHEN e.subtask_id IS NOT NULL THEN e.subtask_id = c.subtask_id
          ELSE e.task_id = s.task_id END
WHERE list_contains($circuits, c.circuit_id) AND e.source = $source AND e.metric = $metric
  AND ($filter IS NULL OR coalesce(e.filter, '') = $filter)
ORDER BY c.circuit_id, whole_task, e.filter
