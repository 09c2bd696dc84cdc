-- question: Which of these circuits are there, of which model and task?
-- parameters:
--   $circuits: INTEGER[], their ids
-- columns: circuit_id, model, task
SELECT c.circuit_id, m.name AS model, t.name AS task
FROM circuit AS c
JOIN model AS m USING (model_id)
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
WHERE list_contains($circuits::INTEGER[], c.circuit_id)
ORDER BY model, task, c.circuit_id
