-- question: How was this circuit made?
-- parameters:
--   $circuit: INTEGER, its id
-- columns: model, weights_digest, n_layers, n_heads, parallel (of the graph), task, subtask, metric, metric_source (digest of
--   a user's own), positions, contrast, ablation, dtype, prompt_style; metric, positions and ablation are unknown where an
--   imported file does not say
SELECT m.name AS model, m.weights_digest, g.n_layers, g.n_heads, g.parallel, t.name AS task, s.name AS subtask,
       coalesce(c.metric, 'unknown') AS metric, c.spec ->> 'metric_source' AS metric_source,
       coalesce(c.positions, 'unknown') AS positions, c.contrast, coalesce(c.ablation, 'unknown') AS ablation, c.dtype,
       c.prompt_style
FROM circuit AS c
JOIN model AS m USING (model_id)
JOIN graph AS g ON g.graph_id = c.graph_id
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
WHERE c.circuit_id = $circuit
