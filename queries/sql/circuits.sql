-- question: What is known of these circuits?
-- parameters:
--   $circuits: INTEGER[], the circuits, in the order of the answer
-- columns: circuit_id, model_id, model, task, subtask, method, steps, grid, metric, positions, contrast, ablation,
--   prompt_style, shots, shots_drawn, reasoning_tokens, chat, seed, n_examples, n_skipped, n_folds, accuracy (the model's share of right answers on the same questions), metric_clean,
--   metric_corrupted, wall_time_s, n_edges, n_nonfinite (edges without a score), origin, started_at, dtype, device,
--   revision, parameters (of the subtask, JSON text), n_notes (the user's own)
-- units: accuracy from 0 to 1, wall_time_s in seconds, metric_clean and metric_corrupted in the metric's unit
SELECT circuit_id, model_id, model, task, subtask, method, steps, grid, metric, positions, contrast, ablation, prompt_style, shots,
       shots_drawn, reasoning_tokens, chat, seed, n_examples, n_skipped, n_folds, accuracy, metric_clean, metric_corrupted, wall_time_s, n_edges, n_nonfinite, origin,
       started_at, dtype, device, revision, parameters::VARCHAR AS parameters,
       (SELECT count(*) FROM note AS n WHERE n.circuit_id = circuits.circuit_id) AS n_notes
FROM circuits
WHERE list_contains($circuits, circuit_id)
ORDER BY list_position($circuits, circuit_id)
