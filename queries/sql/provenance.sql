-- question: What is known of this circuit?
-- parameters:
--   $circuit: INTEGER, the circuit
-- columns: circuit_id, model, revision, architecture, n_layers, n_heads, n_kv_heads, d_model, parallel, n_parameters,
--   weights_digest, task, subtask, parameters (JSON text), origin, method, steps, grid, metric, positions, contrast, ablation,
--   sign_convention, prompt_style, shots, shots_drawn, reasoning_tokens, chat, seed, n_examples, n_skipped, n_folds, bos, padding, n_padded, metric_clean,
--   metric_corrupted, accuracy, accuracy_stderr, accuracy_n, choice_accuracy, choice_stderr, choice_n, n_edges, n_nonfinite, dtype, device, batch_size, software
--   (JSON text), started_at, wall_time_s, score_digest, spec_digest, imported_from (a file), imported_layout, imported_digest (of the file)
-- units: wall_time_s in seconds, metric_clean and metric_corrupted in the metric's unit, accuracy from 0 to 1
SELECT c.circuit_id, m.name AS model, m.revision, m.architecture, m.n_layers, m.n_heads, m.n_kv_heads, m.d_model,
       m.parallel, m.n_parameters, m.weights_digest, t.name AS task, s.name AS subtask, s.parameters::VARCHAR AS parameters,
       c.origin, c.method, c.steps, c.grid, c.metric, c.positions, c.contrast, c.ablation, c.sign_convention, c.prompt_style, c.shots,
       c.shots_drawn, c.reasoning_tokens, c.chat, c.seed, c.n_examples, c.n_skipped, c.n_folds, c.bos, c.padding, c.n_padded, c.metric_clean, c.metric_corrupted,
       e.value AS accuracy, e.stderr AS accuracy_stderr, e.n AS accuracy_n,
       o.value AS choice_accuracy, o.stderr AS choice_stderr, o.n AS choice_n,
       c.n_edges, c.n_nonfinite, c.dtype, c.device, c.batch_size, c.software::VARCHAR AS software, c.started_at,
       c.wall_time_s, c.score_digest, c.spec_digest, f.file AS imported_from, f.dialect AS imported_layout,
       f.digest AS imported_digest
FROM circuit AS c
JOIN model AS m USING (model_id)
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
LEFT JOIN evaluation AS e ON e.circuit_id = c.circuit_id AND e.metric = 'accuracy' AND e.source = 'circuitdb'
LEFT JOIN evaluation AS o ON o.circuit_id = c.circuit_id AND o.metric = 'choice-accuracy' AND o.source = 'circuitdb'
LEFT JOIN imported_file AS f ON f.circuit_id = c.circuit_id
WHERE c.circuit_id = $circuit
