-- question: How was this circuit made?
-- parameters:
--   $circuit: INTEGER, its id
-- columns: model, weights_digest, n_layers, n_heads, parallel (of the graph), task, subtask, metric, metric_source (digest of
--   a user's own), positions, contrast, ablation, dtype, prompt_style
SELECT m.name AS model, m.weights_digest, g.n_layers, g.n_heads, g.parallel, t.name AS task, s.name AS subtask,
       c.metric, c.spec ->> 'metric_source' AS metric_source, c.positions, c.contrast, c.ablation, c.dtype, c.prompt_style
FROM circuit AS c
JOIN model AS m USING (model_id)
JOIN graph AS g ON g.graph_id = c.graph_id
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
WHERE c.circuit_id = $circuit
