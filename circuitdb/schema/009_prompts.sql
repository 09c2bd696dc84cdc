-- How the questions are put to the model: by chain of thought, through a chat template, after shots of their own.

CREATE TABLE chat_template (
    digest VARCHAR NOT NULL,
    template VARCHAR NOT NULL
);
COMMENT ON TABLE chat_template IS 'The chat templates that prompts went through, one row each.';
COMMENT ON COLUMN chat_template.digest IS 'SHA-256 of the template; that of a circuit stands in its spec as chat_template.';
COMMENT ON COLUMN chat_template.template IS 'The tokenizer''s template, in Jinja.';

ALTER TABLE circuit ADD COLUMN shots_drawn VARCHAR;
ALTER TABLE circuit ADD COLUMN reasoning_tokens INTEGER;
ALTER TABLE circuit ADD COLUMN chat BOOLEAN;
UPDATE circuit SET chat = false, shots_drawn = CASE WHEN shots > 0 THEN 'fixed' END WHERE prompt_style IS NOT NULL;
COMMENT ON COLUMN circuit.prompt_style IS 'zero-shot, few-shot or chain-of-thought, with shots or without.';
COMMENT ON COLUMN circuit.shots_drawn IS 'fixed (the same shots before all questions of the circuit) or per-example (each pair has its own); NULL without shots.';
COMMENT ON COLUMN circuit.reasoning_tokens IS 'Most tokens that the model could write as its reasoning; NULL but for chain-of-thought.';
COMMENT ON COLUMN circuit.chat IS 'Whether the prompts went through the tokenizer''s chat template.';

ALTER TABLE example ADD COLUMN reasoning VARCHAR;
COMMENT ON COLUMN example.reasoning IS 'What the model wrote before its answer; NULL where it was not asked for a chain of thought.';
COMMENT ON COLUMN evaluation.metric IS 'What was measured: accuracy (exact match of the answer that the model wrote), choice-accuracy (the right one of given answers is the most probable), or what a file says.';
COMMENT ON COLUMN evaluation.filter IS 'How the answer was read: greedy, log-probability, or what a file says.';

CREATE OR REPLACE VIEW circuits AS
SELECT c.circuit_id, m.name AS model, m.revision, t.name AS task, s.name AS subtask, s.parameters,
       c.method, c.steps, c.grid, c.metric, c.positions, c.contrast, c.ablation, c.prompt_style, c.shots, c.shots_drawn,
       c.reasoning_tokens, c.chat, c.seed,
       c.n_examples, c.n_skipped, c.n_folds,
       e.value AS accuracy, c.metric_clean, c.metric_corrupted, c.wall_time_s, c.n_edges, c.n_nonfinite,
       c.origin, c.started_at, c.dtype, c.device, c.score_digest, c.graph_id, c.model_id, c.subtask_id
FROM circuit AS c
JOIN model AS m USING (model_id)
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
LEFT JOIN evaluation AS e ON e.circuit_id = c.circuit_id AND e.metric = 'accuracy' AND e.filter = 'greedy' AND e.source = 'circuitdb';
COMMENT ON VIEW circuits IS 'Everything a person wants to see of a circuit, one row each.';
COMMENT ON COLUMN circuits.circuit_id IS 'Circuit.';
COMMENT ON COLUMN circuits.model IS 'Name of the model.';
COMMENT ON COLUMN circuits.revision IS 'Hub revision or training step of the model; NULL where none was named.';
COMMENT ON COLUMN circuits.task IS 'Name of the task.';
COMMENT ON COLUMN circuits.subtask IS 'Name of the subtask.';
COMMENT ON COLUMN circuits.parameters IS 'What fixes the subtask, for example {"digits_a": 2, "digits_b": 3}.';
COMMENT ON COLUMN circuits.method IS 'Attribution method, for example eap-ig.';
COMMENT ON COLUMN circuits.steps IS 'Integration steps; NULL where the method has none.';
COMMENT ON COLUMN circuits.grid IS 'Integration grid; NULL where the method has none.';
COMMENT ON COLUMN circuits.metric IS 'Metric that was attributed.';
COMMENT ON COLUMN circuits.positions IS 'Scored positions: last, answer or all.';
COMMENT ON COLUMN circuits.contrast IS 'What a difference compares the answer with; NULL where the metric compares nothing.';
COMMENT ON COLUMN circuits.ablation IS 'What an edge is replaced by: patching, zero, mean or mean-positional.';
COMMENT ON COLUMN circuits.prompt_style IS 'zero-shot, few-shot or chain-of-thought.';
COMMENT ON COLUMN circuits.shots IS 'Solved questions before the scored one.';
COMMENT ON COLUMN circuits.shots_drawn IS 'fixed or per-example; NULL without shots.';
COMMENT ON COLUMN circuits.reasoning_tokens IS 'Most tokens that the model could write as its reasoning; NULL but for chain-of-thought.';
COMMENT ON COLUMN circuits.chat IS 'Whether the prompts went through the tokenizer''s chat template.';
COMMENT ON COLUMN circuits.seed IS 'Seed of the examples.';
COMMENT ON COLUMN circuits.n_examples IS 'Pairs that were scored.';
COMMENT ON COLUMN circuits.n_skipped IS 'Questions left out; the reason is in example.';
COMMENT ON COLUMN circuits.n_folds IS 'Parts of the examples, with no question in common, whose scores are kept apart in fold_score.';
COMMENT ON COLUMN circuits.accuracy IS 'The model''s share of right answers on the circuit''s questions; NULL where it was not asked.';
COMMENT ON COLUMN circuits.metric_clean IS 'Mean metric of the whole model.';
COMMENT ON COLUMN circuits.metric_corrupted IS 'Mean metric with every edge ablated.';
COMMENT ON COLUMN circuits.wall_time_s IS 'Seconds that scoring took; reading the answers is not in it.';
COMMENT ON COLUMN circuits.n_edges IS 'Edges of the circuit.';
COMMENT ON COLUMN circuits.n_nonfinite IS 'Scores that were not finite and are stored as NULL.';
COMMENT ON COLUMN circuits.origin IS 'ingest, or the file format it was imported from.';
COMMENT ON COLUMN circuits.started_at IS 'When scoring began.';
COMMENT ON COLUMN circuits.dtype IS 'Type the model computed in.';
COMMENT ON COLUMN circuits.device IS 'Device the model computed on.';
COMMENT ON COLUMN circuits.score_digest IS 'SHA-256 of the scores: equal digests are equal circuits.';
COMMENT ON COLUMN circuits.graph_id IS 'Graph shape.';
COMMENT ON COLUMN circuits.model_id IS 'Model.';
COMMENT ON COLUMN circuits.subtask_id IS 'Subtask.';

CREATE OR REPLACE MACRO stability(task := NULL, model := NULL) AS TABLE
WITH _asked AS (SELECT task AS _task, model AS _model),
_member AS (
    SELECT c.circuit_id, s.name AS subtask,
           dense_rank() OVER (ORDER BY c.model_id, s.task_id, c.method, c.steps, c.grid, c.metric, c.positions, c.contrast,
                                       c.ablation, c.sign_convention, c.prompt_style, c.shots, c.shots_drawn, c.reasoning_tokens, c.chat,
                                       c.seed, c.n_examples + coalesce(c.n_skipped, 0), c.dtype, c.graph_id) AS number,
           m.name AS model, m.revision, t.name AS task, c.method, c.metric, c.prompt_style, c.shots, c.seed, c.model_id
    FROM circuit AS c
    JOIN model AS m USING (model_id)
    JOIN subtask AS s USING (subtask_id)
    JOIN task AS t USING (task_id)
    CROSS JOIN _asked AS q
    WHERE (q._task IS NULL OR t.name = q._task) AND (q._model IS NULL OR m.name = q._model)
),
_pair AS (
    SELECT a.number, p.similarity
    FROM pair_similarities AS p
    JOIN _member AS a ON a.circuit_id = p.a_id
    JOIN _member AS b ON b.circuit_id = p.b_id
    WHERE a.number = b.number AND a.subtask <> b.subtask
),
_mean AS (SELECT number, avg(similarity) AS stability, count(similarity) AS n_pairs FROM _pair GROUP BY number)
SELECT m.model, m.task, m.method, m.metric, m.prompt_style, m.shots, m.seed, m.model_id, count(DISTINCT m.subtask) AS n_subtasks,
       coalesce(any_value(x.n_pairs), 0) AS n_pairs, any_value(x.stability) AS stability
FROM _member AS m
LEFT JOIN _mean AS x USING (number)
GROUP BY m.number, m.model, m.task, m.method, m.metric, m.prompt_style, m.shots, m.seed, m.model_id
ORDER BY m.number;
COMMENT ON MACRO TABLE stability IS 'Mean similarity of circuits of distinct subtasks, one row a model, task and way of scoring; of one task or model where named: stability(task := ''addition''). Without ceiling: `circuitdb stability` has that.';
