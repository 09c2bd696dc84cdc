-- question: Which circuits do the filters leave, and with what provenance may each be compared?
-- parameters:
--   $models: INTEGER[], ids of models that are let through; NULL lets all through
--   $tasks, $subtasks, $origins, $methods, $grids, $metrics, $positions, $contrasts, $ablations, $prompt_styles,
--     $shots_drawn, $chats (no, yes), $dtypes: VARCHAR[], names that are let through; NULL lets all through
--   $steps, $shots, $reasoning_tokens, $examples: INTEGER[], $seeds: BIGINT[], numbers that are let through; NULL lets all
--     through
--   $circuits: INTEGER[], ids that are let through; NULL lets all through
-- columns: circuit_id, graph_id, n_layers, n_heads, parallel, n_edges, n_kv_heads (what must agree for two circuits to
--   line up); model_id, revision, task, origin, method, steps, grid, metric, positions, contrast, ablation,
--   sign_convention, prompt_style, shots, shots_drawn, reasoning_tokens, chat (no, yes), seed, examples (drawn: scored or
--   skipped), dtype (what must agree for two circuits to be of one group); subtask, parameters (JSON text); n_examples
--   (scored), n_folds; score_digest (equal for equal scores), spec_digest (of all that decides them)
-- units: counts
SELECT c.circuit_id, c.graph_id, g.n_layers, g.n_heads, g.parallel, c.n_edges, m.n_kv_heads,
       c.model_id, m.revision, t.name AS task, c.origin, c.method, c.steps, c.grid, c.metric, c.positions, c.contrast,
       c.ablation, c.sign_convention, c.prompt_style, c.shots, c.shots_drawn, c.reasoning_tokens,
       CASE WHEN c.chat THEN 'yes' WHEN NOT c.chat THEN 'no' END AS chat, c.seed,
       c.n_examples + coalesce(c.n_skipped, 0) AS examples, c.dtype,
       s.name AS subtask, s.parameters::VARCHAR AS parameters, c.n_examples, c.n_folds, c.score_digest,
       c.spec_digest
FROM circuit AS c
JOIN graph AS g USING (graph_id)
JOIN model AS m USING (model_id)
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
WHERE ($models::INTEGER[] IS NULL OR list_contains($models, c.model_id))
  AND ($tasks::VARCHAR[] IS NULL OR list_contains($tasks, t.name))
  AND ($subtasks::VARCHAR[] IS NULL OR list_contains($subtasks, s.name))
  AND ($origins::VARCHAR[] IS NULL OR list_contains($origins, c.origin))
  AND ($methods::VARCHAR[] IS NULL OR list_contains($methods, c.method))
  AND ($steps::INTEGER[] IS NULL OR list_contains($steps, c.steps))
  AND ($grids::VARCHAR[] IS NULL OR list_contains($grids, c.grid))
  AND ($metrics::VARCHAR[] IS NULL OR list_contains($metrics, c.metric))
  AND ($positions::VARCHAR[] IS NULL OR list_contains($positions, c.positions))
  AND ($contrasts::VARCHAR[] IS NULL OR list_contains($contrasts, c.contrast))
  AND ($ablations::VARCHAR[] IS NULL OR list_contains($ablations, c.ablation))
  AND ($prompt_styles::VARCHAR[] IS NULL OR list_contains($prompt_styles, c.prompt_style))
  AND ($shots_drawn::VARCHAR[] IS NULL OR list_contains($shots_drawn, c.shots_drawn))
  AND ($reasoning_tokens::INTEGER[] IS NULL OR list_contains($reasoning_tokens, c.reasoning_tokens))
  AND ($chats::VARCHAR[] IS NULL OR list_contains($chats, CASE WHEN c.chat THEN 'yes' WHEN NOT c.chat THEN 'no' END))
  AND ($shots::INTEGER[] IS NULL OR list_contains($shots, c.shots))
  AND ($seeds::BIGINT[] IS NULL OR list_contains($seeds, c.seed))
  AND ($examples::INTEGER[] IS NULL OR list_contains($examples, c.n_examples + coalesce(c.n_skipped, 0)))
  AND ($dtypes::VARCHAR[] IS NULL OR list_contains($dtypes, c.dtype))
  AND ($circuits::INTEGER[] IS NULL OR list_contains($circuits, c.circuit_id))
ORDER BY c.circuit_id
