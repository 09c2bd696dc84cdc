-- question: Which imported hard circuits go with these circuits?
-- parameters:
--   $circuits: INTEGER[], ids of soft circuits; without any soft circuit in the file all hard ones go
-- columns: hard_id, model, task
SELECT h.hard_id, m.name AS model, t.name AS task
FROM imported_hard_circuit AS h
JOIN model AS m USING (model_id)
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
WHERE CASE WHEN h.circuit_id IS NOT NULL THEN list_contains($circuits::INTEGER[], h.circuit_id)
           ELSE NOT EXISTS (FROM circuit)
             OR (h.model_id, s.task_id) IN (
                    SELECT c.model_id, o.task_id
                    FROM circuit AS c
                    JOIN subtask AS o USING (subtask_id)
                    WHERE list_contains($circuits::INTEGER[], c.circuit_id)
                ) END
ORDER BY model, task, h.hard_id
