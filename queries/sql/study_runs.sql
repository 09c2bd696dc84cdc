-- question: In which ways were these circuits scored, when and with what?
-- parameters:
--   $circuits: INTEGER[], the circuits
-- columns: model_id, model, task, method, steps, grid, metric, positions, contrast, ablation, sign_convention, prompt_style, shots,
--   seed, dtype, device, n_circuits, n_examples (scored, of all circuits), least_examples and most_examples (of one),
--   n_skipped, first_started, last_started (as text), software (JSON text)
-- units: counts
SELECT m.model_id, m.name AS model, t.name AS task, c.method, c.steps, c.grid, c.metric, c.positions, c.contrast, c.ablation,
       c.sign_convention, c.prompt_style, c.shots, c.seed, c.dtype, c.device, count(*) AS n_circuits,
       sum(c.n_examples)::BIGINT AS n_examples, min(c.n_examples) AS least_examples,
       max(c.n_examples) AS most_examples, sum(c.n_skipped)::BIGINT AS n_skipped,
       min(c.started_at)::VARCHAR AS first_started, max(c.started_at)::VARCHAR AS last_started,
       c.software::VARCHAR AS software
FROM circuit AS c
JOIN model AS m USING (model_id)
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
WHERE list_contains($circuits, c.circuit_id)
GROUP BY ALL
ORDER BY ALL
