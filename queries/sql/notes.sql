-- question: What did the user note, on these circuits or on nodes and edges in general?
-- parameters:
--   $circuits: INTEGER[], the circuits
--   $everything: BOOLEAN, whether notes on no circuit, or on one that is gone, are wanted too
-- columns: note_id (its number), circuit_id (NULL for a node or edge in general), model_id, model, task, subtask, method,
--   node, edge (each NULL where it is not about one), text, created_at, changed_at (NULL if never)
-- units: none
SELECT n.note_id, n.circuit_id, c.model_id, c.model, c.task, c.subtask, c.method, n.node, n.edge, n.text, n.created_at,
       n.changed_at
FROM note AS n
LEFT JOIN circuits AS c USING (circuit_id)
WHERE $everything OR list_contains($circuits, n.circuit_id)
ORDER BY n.created_at, n.note_id
