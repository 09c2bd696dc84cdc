-- question: How well do the models do on the subtasks of these circuits?
-- parameters:
--   $circuits: INTEGER[], the circuits, in the order of the answer
--   $everything: BOOLEAN, true for all evaluations, also those of models and subtasks without a circuit
-- columns: model_id, model, task, subtask, circuit_id (whose examples were used; NULL for imported results), metric, filter (how
--   the answer was read), value, stderr, n (questions), source
-- units: accuracies from 0 to 1, others in the metric's own unit
WITH cell AS (
    SELECT model_id, subtask_id, min(list_position($circuits::INTEGER[], circuit_id)) AS place
    FROM circuit
    WHERE list_contains($circuits, circuit_id)
    GROUP BY ALL
)
SELECT e.model_id, m.name AS model, t.name AS task, s.name AS subtask, e.circuit_id, e.metric, e.filter, e.value, e.stderr, e.n,
       e.source
FROM evaluation AS e
JOIN model AS m USING (model_id)
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
LEFT JOIN cell USING (model_id, subtask_id)
WHERE $everything
   OR list_contains($circuits, e.circuit_id)
   OR (e.circuit_id IS NULL AND cell.place IS NOT NULL)
ORDER BY cell.place, model, task, subtask, list_position($circuits, e.circuit_id), e.source, e.metric, e.filter
