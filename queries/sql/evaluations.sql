-- question: How well do the models do on the subtasks of these circuits?
-- parameters:
--   $circuits: INTEGER[], the circuits, in the order of the answer
--   $everything: BOOLEAN, true for all evaluations, also those of models and subtasks without a circuit, and of names that
--     match none
-- columns: model_id, model, task, subtask (NULL for a whole task), circuit_id (whose examples were used; NULL for imported
--   results), metric, filter (how the answer was read), value, stderr, n (questions), is_group (a mean that a tool made
--   over other rows), source
-- units: accuracies from 0 to 1, others in the metric's own unit
WITH cell AS (
    SELECT c.model_id, c.subtask_id, s.task_id, min(list_position($circuits::INTEGER[], c.circuit_id)) AS place
    FROM circuit AS c
    JOIN subtask AS s USING (subtask_id)
    WHERE list_contains($circuits, c.circuit_id)
    GROUP BY ALL
), first_of_task AS (
    SELECT model_id, task_id, min(place) AS place FROM cell GROUP BY ALL
)
SELECT e.model_id, e.model, e.task, e.subtask, e.circuit_id, e.metric, e.filter, e.value, e.stderr, e.n, e.is_group, e.source
FROM evaluations AS e
LEFT JOIN cell USING (model_id, subtask_id)
LEFT JOIN first_of_task AS f ON e.subtask_id IS NULL AND f.model_id = e.model_id AND f.task_id = e.task_id
WHERE $everything
   OR list_contains($circuits, e.circuit_id)
   OR (e.circuit_id IS NULL AND coalesce(cell.place, f.place) IS NOT NULL)
ORDER BY coalesce(cell.place, f.place), e.model, e.task, e.subtask, list_position($circuits, e.circuit_id), e.source, e.metric,
         e.filter
