-- Views and macros that make the file useful from the bare duckdb shell.

CREATE VIEW circuits AS
SELECT c.circuit_id, m.name AS model, m.revision, t.name AS task, s.name AS subtask, s.parameters,
       c.method, c.steps, c.grid, c.metric, c.prompt_style, c.shots, c.seed, c.n_examples, c.n_skipped, c.n_folds,
       e.value AS accuracy, c.metric_clean, c.metric_corrupted, c.wall_time_s, c.n_edges, c.n_nonfinite,
       c.origin, c.started_at, c.dtype, c.device, c.score_digest, c.graph_id, c.model_id, c.subtask_id
FROM circuit AS c
JOIN model AS m USING (model_id)
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
LEFT JOIN evaluation AS e ON e.circuit_id = c.circuit_id AND e.metric = 'accuracy' AND e.filter = 'greedy' AND e.source = 'circuitdb';
COMMENT ON VIEW circuits IS 'Everything a person wants to see of a circuit, one row each.';

CREATE VIEW subtask_parameters AS
SELECT s.subtask_id, t.name AS task, s.name AS subtask, j.key AS parameter,
       s.parameters ->> j.key AS value, TRY_CAST(s.parameters ->> j.key AS DOUBLE) AS number
FROM subtask AS s
JOIN task AS t USING (task_id), json_each(s.parameters) AS j;
COMMENT ON VIEW subtask_parameters IS 'The parameters of each subtask, one row each, as text and, where it is one, as a number.';

CREATE VIEW scores AS
SELECT x.circuit_id, m.name AS model, t.name AS task, s.name AS subtask, x.edge_id, e.name AS edge, e.source, e.target,
       e.source_kind, e.source_layer, e.source_head, e.target_kind, e.target_layer, e.target_head, e.qkv,
       CASE WHEN e.qkv IN ('k', 'v') THEN e.target_head // (m.n_heads // m.n_kv_heads) END AS kv_group, x.score
FROM edge_score AS x
JOIN circuit AS c USING (circuit_id)
JOIN model AS m USING (model_id)
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
JOIN edge AS e ON e.graph_id = c.graph_id AND e.edge_id = x.edge_id;
COMMENT ON VIEW scores IS 'Edge scores with names joined in. kv_group is the shared key-value head that a k or v target reads from.';

CREATE VIEW shared_scores AS
SELECT circuit_id, source, 'a' || target_layer || '.kv' || kv_group || '<' || qkv || '>' AS target, qkv, target_layer, kv_group,
       sum(score) AS score
FROM scores
WHERE qkv IN ('k', 'v')
GROUP BY ALL;
COMMENT ON VIEW shared_scores IS 'Scores of the shared key and value projections under grouped-query attention: the sum over the query heads of a group.';

CREATE VIEW node_scores AS
SELECT x.circuit_id, e.source AS node, e.source_kind AS kind, e.source_layer AS layer, e.source_head AS head,
       sum(x.score) AS score
FROM edge_score AS x
JOIN circuit AS c USING (circuit_id)
JOIN edge AS e ON e.graph_id = c.graph_id AND e.edge_id = x.edge_id
GROUP BY ALL;
COMMENT ON VIEW node_scores IS 'Score of each node: the sum over its outgoing edges.';

CREATE VIEW edge_ranks AS
SELECT circuit_id, edge_id, score,
       rank() OVER (PARTITION BY circuit_id ORDER BY score)
       + (count(*) OVER (PARTITION BY circuit_id, score) - 1) / 2.0 AS rank
FROM edge_score
WHERE score IS NOT NULL;
COMMENT ON VIEW edge_ranks IS 'Mid-ranks of the scores within each circuit, ties averaged: what Spearman''s rho correlates.';

CREATE MACRO top_edges(circuit, n) AS TABLE
SELECT row_number() OVER (ORDER BY abs(x.score) DESC, x.edge_id) AS place, e.name AS edge, x.score, x.edge_id
FROM edge_score AS x
JOIN circuit AS c USING (circuit_id)
JOIN edge AS e ON e.graph_id = c.graph_id AND e.edge_id = x.edge_id
WHERE x.circuit_id = circuit AND x.score IS NOT NULL
ORDER BY place
LIMIT n;

CREATE MACRO similarity(a, b) AS TABLE
WITH pairs AS (
    SELECT x.score AS first, y.score AS second
    FROM edge_score AS x
    JOIN edge_score AS y USING (edge_id)
    JOIN circuit AS cx ON cx.circuit_id = x.circuit_id
    JOIN circuit AS cy ON cy.circuit_id = y.circuit_id AND cy.graph_id = cx.graph_id
    WHERE x.circuit_id = a AND y.circuit_id = b AND x.score IS NOT NULL AND y.score IS NOT NULL
), ranked AS (
    SELECT rank() OVER (ORDER BY first) + (count(*) OVER (PARTITION BY first) - 1) / 2.0 AS first,
           rank() OVER (ORDER BY second) + (count(*) OVER (PARTITION BY second) - 1) / 2.0 AS second
    FROM pairs
)
SELECT CASE WHEN min(first) < max(first) AND min(second) < max(second) THEN corr(first, second) END AS similarity,
       count(*) AS n_edges
FROM ranked;

COMMENT ON COLUMN circuits.circuit_id IS 'Circuit.';
COMMENT ON COLUMN circuits.model IS 'Name of the model.';
COMMENT ON COLUMN circuits.revision IS 'Hub revision or training step of the model; NULL where none was named.';
COMMENT ON COLUMN circuits.task IS 'Name of the task.';
COMMENT ON COLUMN circuits.subtask IS 'Name of the subtask.';
COMMENT ON COLUMN circuits.parameters IS 'What fixes the subtask, for example {"digits_a": 2, "digits_b": 3}.';
COMMENT ON COLUMN circuits.method IS 'Attribution method, for example eap-ig.';
COMMENT ON COLUMN circuits.steps IS 'Integration steps; NULL where the method has none.';
COMMENT ON COLUMN circuits.grid IS 'Integration grid: right is k/m for k = 1..m, left is k = 0..m-1.';
COMMENT ON COLUMN circuits.metric IS 'Metric that was attributed: kl (from clean to run, in nats) or logit-difference.';
COMMENT ON COLUMN circuits.prompt_style IS 'zero-shot or few-shot.';
COMMENT ON COLUMN circuits.shots IS 'Solved questions before the scored one.';
COMMENT ON COLUMN circuits.seed IS 'Seed of the examples.';
COMMENT ON COLUMN circuits.n_examples IS 'Pairs that were scored.';
COMMENT ON COLUMN circuits.n_skipped IS 'Questions left out; the reason is in example.';
COMMENT ON COLUMN circuits.n_folds IS 'Parts of the examples, with no question in common, whose scores are kept apart in fold_score.';
COMMENT ON COLUMN circuits.accuracy IS 'The model''s share of right answers on the circuit''s questions; NULL where it was not asked.';
COMMENT ON COLUMN circuits.metric_clean IS 'Mean metric of the clean runs.';
COMMENT ON COLUMN circuits.metric_corrupted IS 'Mean metric of the corrupted runs.';
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

COMMENT ON COLUMN subtask_parameters.subtask_id IS 'Subtask.';
COMMENT ON COLUMN subtask_parameters.task IS 'Name of the task.';
COMMENT ON COLUMN subtask_parameters.subtask IS 'Name of the subtask.';
COMMENT ON COLUMN subtask_parameters.parameter IS 'Name of the parameter, for example digits_a.';
COMMENT ON COLUMN subtask_parameters.value IS 'Its value as text.';
COMMENT ON COLUMN subtask_parameters.number IS 'Its value as a number; NULL where it is none.';

COMMENT ON COLUMN scores.circuit_id IS 'Circuit.';
COMMENT ON COLUMN scores.model IS 'Name of the model.';
COMMENT ON COLUMN scores.task IS 'Name of the task.';
COMMENT ON COLUMN scores.subtask IS 'Name of the subtask.';
COMMENT ON COLUMN scores.edge_id IS 'Number of the edge within its graph.';
COMMENT ON COLUMN scores.edge IS 'source->target, for example a0.h1->m1 or input->a3.h2<q>.';
COMMENT ON COLUMN scores.source IS 'Name of the source node.';
COMMENT ON COLUMN scores.target IS 'Name of the target with its branch, for example a3.h2<q>.';
COMMENT ON COLUMN scores.source_kind IS 'input, head or mlp.';
COMMENT ON COLUMN scores.source_layer IS 'Layer of the source; NULL for input.';
COMMENT ON COLUMN scores.source_head IS 'Head of the source; NULL where it is no head.';
COMMENT ON COLUMN scores.target_kind IS 'head, mlp or logits.';
COMMENT ON COLUMN scores.target_layer IS 'Layer of the target; NULL for logits.';
COMMENT ON COLUMN scores.target_head IS 'Query head of the target; NULL where it is no head.';
COMMENT ON COLUMN scores.qkv IS 'q, k or v: which input of the head; NULL where the target is no head.';
COMMENT ON COLUMN scores.kv_group IS 'Shared key-value head that a k or v target reads from; NULL for other targets.';
COMMENT ON COLUMN scores.score IS 'Change of the mean metric when the edge is ablated; NULL where it was not finite.';

COMMENT ON COLUMN shared_scores.circuit_id IS 'Circuit.';
COMMENT ON COLUMN shared_scores.source IS 'Name of the source node.';
COMMENT ON COLUMN shared_scores.target IS 'Shared projection, for example a3.kv1<k>.';
COMMENT ON COLUMN shared_scores.qkv IS 'k or v.';
COMMENT ON COLUMN shared_scores.target_layer IS 'Layer of the target.';
COMMENT ON COLUMN shared_scores.kv_group IS 'Key-value head of the layer.';
COMMENT ON COLUMN shared_scores.score IS 'Sum of the scores over the query heads that share it.';

COMMENT ON COLUMN node_scores.circuit_id IS 'Circuit.';
COMMENT ON COLUMN node_scores.node IS 'Name of the node.';
COMMENT ON COLUMN node_scores.kind IS 'input, head or mlp.';
COMMENT ON COLUMN node_scores.layer IS 'Layer; NULL for input.';
COMMENT ON COLUMN node_scores.head IS 'Query head; NULL where the node is no head.';
COMMENT ON COLUMN node_scores.score IS 'Sum of the scores of the edges that leave it.';

COMMENT ON COLUMN edge_ranks.circuit_id IS 'Circuit.';
COMMENT ON COLUMN edge_ranks.edge_id IS 'Edge of the circuit''s graph.';
COMMENT ON COLUMN edge_ranks.score IS 'Score of the edge.';
COMMENT ON COLUMN edge_ranks.rank IS 'Its place among the circuit''s scores from the lowest, 1; equal scores share the mean of their places.';

COMMENT ON MACRO TABLE top_edges IS 'The n edges of a circuit with the largest absolute scores, strongest first.';
COMMENT ON MACRO TABLE similarity IS 'Spearman''s rho of the scores of circuits a and b; NULL where one is constant or their graphs differ. n_edges counts the edges that both have a score for.';
