-- question: How much of the model do these circuits, cut and run on their own, do?
-- parameters:
--   $circuits: INTEGER[], the circuits that were cut and those whose examples they were run on, in the order of the answer
--   $selections: VARCHAR[], ways of choosing edges that are let through; NULL lets all through
-- columns: circuit_id, data_circuit_id (whose examples), selection, ablation, metric, share (of all edges, asked for), n_edges
--   (kept), n_tied (left out although they tie with the last one kept), value, clean, corrupted (mean metric of the circuit, of
--   the whole model, with every edge ablated), faithfulness, accuracy, n_examples, reason (why faithfulness is NULL)
-- units: share, faithfulness and accuracy are shares; value, clean and corrupted in the metric's unit
SELECT circuit_id, data_circuit_id, selection, ablation, metric, share, n_edges, n_tied, value, clean, corrupted,
       faithfulness, accuracy, n_examples, reason
FROM faithfulness
WHERE list_contains($circuits, circuit_id)
  AND list_contains($circuits, data_circuit_id)
  AND ($selections::VARCHAR[] IS NULL OR list_contains($selections, selection))
ORDER BY list_position($circuits, circuit_id), list_position($circuits, data_circuit_id), selection, share
