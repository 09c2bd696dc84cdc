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
LEFT JOIN evaluation AS e ON e.circuit_id = c.circuit_id AND e.metric = 'accuracy' AND e.source = 'circuitdb';
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
