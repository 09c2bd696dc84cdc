-- What the paper asks, as macros to join. An argument may be a column of a table before it (FROM circuit AS c,
-- similarity(c.circuit_id, 9)); so each macro first takes its arguments by names of its own, where none of its tables can
-- hide a column of the caller's.

CREATE OR REPLACE MACRO top_edges(circuit, n) AS TABLE
WITH _asked AS (SELECT circuit AS _circuit, n AS _n),
_placed AS (
    SELECT row_number() OVER (ORDER BY abs(x.score) DESC, x.edge_id) AS place, e.name AS edge, x.score, x.edge_id, a._n
    FROM _asked AS a
    JOIN edge_score AS x ON x.circuit_id = a._circuit
    JOIN circuit AS c USING (circuit_id)
    JOIN edge AS e ON e.graph_id = c.graph_id AND e.edge_id = x.edge_id
    WHERE x.score IS NOT NULL
)
SELECT place, edge, score, edge_id FROM _placed WHERE place <= _n ORDER BY place;
COMMENT ON MACRO TABLE top_edges IS 'The n edges of a circuit with the largest absolute scores, strongest first.';

CREATE MACRO hard_circuit(circuit, n) AS TABLE
WITH _asked AS (SELECT circuit AS _circuit, n AS _n),
_placed AS (
    SELECT row_number() OVER (ORDER BY abs(x.score) DESC, x.edge_id) AS place, e.name AS edge, e.source, e.target, x.score,
           x.edge_id, a._n
    FROM _asked AS a
    JOIN edge_score AS x ON x.circuit_id = a._circuit
    JOIN circuit AS c USING (circuit_id)
    JOIN edge AS e ON e.graph_id = c.graph_id AND e.edge_id = x.edge_id
    WHERE x.score <> 0
)
SELECT edge, source, target, score, edge_id FROM _placed WHERE place <= _n ORDER BY edge_id;
COMMENT ON MACRO TABLE hard_circuit IS 'A circuit cut to its n edges of the largest absolute scores, ties by edge id, in edge order; edges of score zero are never in.';

CREATE MACRO containment(a, b, n) AS TABLE
WITH _asked AS (SELECT a AS _a, b AS _b, n AS _n),
_placed AS (
    SELECT x.circuit_id, x.edge_id, x.circuit_id = q._a AS in_first, x.circuit_id = q._b AS in_second, q._n,
           row_number() OVER (PARTITION BY x.circuit_id ORDER BY abs(x.score) DESC, x.edge_id) AS place
    FROM _asked AS q
    JOIN edge_score AS x ON x.circuit_id = q._a OR x.circuit_id = q._b
    WHERE x.score <> 0
),
_member AS (
    SELECT edge_id, bool_or(in_first) AS in_first, bool_or(in_second) AS in_second
    FROM _placed
    WHERE place <= _n
    GROUP BY edge_id
),
_counted AS (
    SELECT count(*) FILTER (in_first) AS n_a, count(*) FILTER (in_second) AS n_b,
           count(*) FILTER (in_first AND in_second) AS shared
    FROM _member
)
SELECT k.n_a, k.n_b, k.shared, CASE WHEN k.n_a > 0 THEN k.shared / k.n_a END AS share_of_a,
       CASE WHEN k.n_b > 0 THEN k.shared / k.n_b END AS share_of_b,
       CASE WHEN k.n_a + k.n_b > 0 THEN k.shared / (k.n_a + k.n_b - k.shared) END AS jaccard,
       CASE WHEN k.n_a > 0 THEN k.n_b / f.n_edges END AS expected_share
FROM _counted AS k
CROSS JOIN _asked AS q
JOIN circuit AS f ON f.circuit_id = q._a
JOIN circuit AS s ON s.circuit_id = q._b AND s.graph_id = f.graph_id;
COMMENT ON MACRO TABLE containment IS 'What circuits a and b share, each cut to its n strongest edges. share_of_a is the share of a that is in b, expected_share what a random circuit of b''s size would hold of it. No row where their graphs differ.';

CREATE OR REPLACE MACRO similarity(a, b) AS TABLE
WITH _asked AS (SELECT a AS _a, b AS _b),
_pair AS (
    SELECT x.score AS first, y.score AS second
    FROM _asked AS q
    JOIN circuit AS cx ON cx.circuit_id = q._a
    JOIN circuit AS cy ON cy.circuit_id = q._b AND cy.graph_id = cx.graph_id
    JOIN edge_score AS x ON x.circuit_id = q._a
    JOIN edge_score AS y ON y.circuit_id = q._b AND y.edge_id = x.edge_id
    WHERE x.score IS NOT NULL AND y.score IS NOT NULL
),
_ranked AS (
    SELECT rank() OVER (ORDER BY first) + (count(*) OVER (PARTITION BY first) - 1) / 2.0 AS first,
           rank() OVER (ORDER BY second) + (count(*) OVER (PARTITION BY second) - 1) / 2.0 AS second
    FROM _pair
)
SELECT CASE WHEN min(first) < max(first) AND min(second) < max(second)
            THEN greatest(-1.0, least(1.0, corr(first, second))) END AS similarity,
       count(*) AS n_edges
FROM _ranked;
COMMENT ON MACRO TABLE similarity IS 'Spearman''s rho of the scores of circuits a and b; NULL where one is constant or their graphs differ. n_edges counts the edges that both have a score for.';

CREATE VIEW pair_similarities AS
WITH centred AS (
    SELECT c.graph_id, c.n_edges, r.circuit_id, r.edge_id, r.rank - (c.n_edges + 1) / 2.0 AS rank
    FROM edge_ranks AS r
    JOIN circuit AS c USING (circuit_id)
    WHERE c.n_nonfinite = 0
), length AS (
    SELECT circuit_id, nullif(sqrt(sum(rank * rank)), 0) AS length FROM centred GROUP BY circuit_id
), unit AS (
    SELECT graph_id, n_edges, circuit_id, edge_id, rank / length AS rank FROM centred JOIN length USING (circuit_id)
), complete AS (
    SELECT a.circuit_id AS a_id, b.circuit_id AS b_id,
           CASE WHEN count(a.rank * b.rank) > 0 THEN greatest(-1.0, least(1.0, sum(a.rank * b.rank))) END AS similarity,
           min(a.n_edges)::BIGINT AS n_edges
    FROM unit AS a
    JOIN unit AS b ON b.graph_id = a.graph_id AND b.edge_id = a.edge_id AND a.circuit_id < b.circuit_id
    GROUP BY ALL
), lacking AS (
    SELECT a.circuit_id AS a_id, b.circuit_id AS b_id
    FROM circuit AS a
    JOIN circuit AS b ON b.graph_id = a.graph_id AND a.circuit_id < b.circuit_id
    WHERE a.n_nonfinite + b.n_nonfinite > 0
), reranked AS (
    SELECT l.a_id, l.b_id,
           rank() OVER (PARTITION BY l.a_id, l.b_id ORDER BY x.score)
           + (count(*) OVER (PARTITION BY l.a_id, l.b_id, x.score) - 1) / 2.0 AS first,
           rank() OVER (PARTITION BY l.a_id, l.b_id ORDER BY y.score)
           + (count(*) OVER (PARTITION BY l.a_id, l.b_id, y.score) - 1) / 2.0 AS second
    FROM lacking AS l
    JOIN edge_score AS x ON x.circuit_id = l.a_id
    JOIN edge_score AS y ON y.circuit_id = l.b_id AND y.edge_id = x.edge_id
    WHERE x.score IS NOT NULL AND y.score IS NOT NULL
), rest AS (
    SELECT l.a_id, l.b_id,
           CASE WHEN min(r.first) < max(r.first) AND min(r.second) < max(r.second)
                THEN greatest(-1.0, least(1.0, corr(r.first, r.second))) END AS similarity,
           count(r.first) AS n_edges
    FROM lacking AS l
    LEFT JOIN reranked AS r USING (a_id, b_id)
    GROUP BY ALL
)
FROM complete UNION ALL FROM rest;
COMMENT ON VIEW pair_similarities IS 'Spearman''s rho of every two circuits of one graph, a before b. It takes DuckDB tens of seconds for 64 circuits of 123,211 edges; `circuitdb sql` computes it faster.';
COMMENT ON COLUMN pair_similarities.a_id IS 'Circuit with the lower id.';
COMMENT ON COLUMN pair_similarities.b_id IS 'Circuit with the higher id.';
COMMENT ON COLUMN pair_similarities.similarity IS 'Spearman''s rho over the edges that both have a score for; NULL where one is constant there.';
COMMENT ON COLUMN pair_similarities.n_edges IS 'How many these are.';

CREATE MACRO stability(task := NULL, model := NULL) AS TABLE
WITH _asked AS (SELECT task AS _task, model AS _model),
_member AS (
    SELECT c.circuit_id, s.name AS subtask,
           dense_rank() OVER (ORDER BY c.model_id, s.task_id, c.method, c.steps, c.grid, c.metric, c.positions, c.contrast,
                                       c.ablation, c.sign_convention, c.prompt_style, c.shots, c.seed,
                                       c.n_examples + coalesce(c.n_skipped, 0), c.dtype, c.graph_id) AS number,
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

CREATE MACRO families(alpha, task := NULL, model := NULL) AS TABLE
WITH RECURSIVE _asked AS (SELECT alpha AS _alpha, task AS _task, model AS _model),
_member AS (
    SELECT c.circuit_id, s.name AS subtask, q._alpha
    FROM circuit AS c
    JOIN model AS m USING (model_id)
    JOIN subtask AS s USING (subtask_id)
    JOIN task AS t USING (task_id)
    CROSS JOIN _asked AS q
    WHERE (q._task IS NULL OR t.name = q._task) AND (q._model IS NULL OR m.name = q._model)
),
_pair AS (
    SELECT p.a_id, p.b_id, p.similarity, a._alpha
    FROM pair_similarities AS p
    JOIN _member AS a ON a.circuit_id = p.a_id
    JOIN _member AS b ON b.circuit_id = p.b_id
),
_link AS (
    SELECT a_id AS from_id, b_id AS to_id FROM _pair WHERE similarity >= _alpha
    UNION ALL
    SELECT b_id, a_id FROM _pair WHERE similarity >= _alpha
),
_reached(circuit_id, other_id) AS (
    SELECT circuit_id, circuit_id FROM _member
    UNION
    SELECT r.circuit_id, l.to_id FROM _reached AS r JOIN _link AS l ON l.from_id = r.other_id
),
_labelled AS (SELECT circuit_id, min(other_id) AS first_id, count(*) AS size FROM _reached GROUP BY circuit_id),
_lowest AS (
    SELECT a.first_id, min(p.similarity) AS lowest_within
    FROM _pair AS p
    JOIN _labelled AS a ON a.circuit_id = p.a_id
    JOIN _labelled AS b ON b.circuit_id = p.b_id AND b.first_id = a.first_id
    GROUP BY a.first_id
)
SELECT dense_rank() OVER (ORDER BY l.size DESC, l.first_id) AS family, l.size, m.circuit_id, m.subtask, w.lowest_within
FROM _member AS m
JOIN _labelled AS l USING (circuit_id)
LEFT JOIN _lowest AS w USING (first_id)
ORDER BY family, m.circuit_id;
COMMENT ON MACRO TABLE families IS 'Connected components of similarity >= alpha among circuits of one graph, numbered from the largest; of one task or model where named: families(0.6, task := ''addition''). lowest_within may be under alpha: the relation is not transitive.';
