-- What a similarity could reach at most: the reliability of a circuit by its folds, and with it the ceiling of two.

CREATE MACRO reliability(circuit) AS TABLE
WITH _asked AS (SELECT circuit AS _circuit),
_whole AS (
    SELECT c.circuit_id, c.n_folds, c.n_folds // 2 AS size FROM _asked AS a JOIN circuit AS c ON c.circuit_id = a._circuit
),
-- Every way to part the folds into two halves, of an odd number with one left out: the first half as the bits of a number.
_split AS (
    SELECT w.circuit_id, w.size, f.first, o.left_out, row_number() OVER (PARTITION BY w.circuit_id) AS split
    FROM _whole AS w
    CROSS JOIN range(1, 256) AS f(first)
    CROSS JOIN range(0, 8) AS o(left_out)
    WHERE w.n_folds BETWEEN 2 AND 8 AND f.first < 1 << w.n_folds AND bit_count(f.first) = w.size
        AND CASE WHEN w.n_folds % 2 = 0 THEN o.left_out = 0
                 ELSE o.left_out < w.n_folds AND f.first >> o.left_out & 1 = 0 END
        AND f.first >> (CASE WHEN w.n_folds % 2 = 1 AND o.left_out = 0 THEN 1 ELSE 0 END) & 1 = 1
),
_half AS (
    SELECT s.circuit_id, s.split, x.edge_id, s.first >> x.fold & 1 = 1 AS is_first,
           CASE WHEN count(x.score) = any_value(s.size) THEN avg(x.score)::FLOAT END AS score
    FROM _split AS s
    JOIN _whole AS w USING (circuit_id)
    JOIN fold_score AS x ON x.circuit_id = s.circuit_id AND (w.n_folds % 2 = 0 OR x.fold <> s.left_out)
    GROUP BY ALL
),
_pair AS (
    SELECT circuit_id, split, edge_id, any_value(score) FILTER (is_first) AS first, any_value(score) FILTER (NOT is_first) AS second
    FROM _half
    GROUP BY ALL
    HAVING first IS NOT NULL AND second IS NOT NULL
),
_ranked AS (
    SELECT circuit_id, split,
           rank() OVER (PARTITION BY circuit_id, split ORDER BY first)
           + (count(*) OVER (PARTITION BY circuit_id, split, first) - 1) / 2.0 AS first,
           rank() OVER (PARTITION BY circuit_id, split ORDER BY second)
           + (count(*) OVER (PARTITION BY circuit_id, split, second) - 1) / 2.0 AS second
    FROM _pair
),
_rho AS (
    SELECT s.circuit_id, s.split,
           CASE WHEN min(r.first) < max(r.first) AND min(r.second) < max(r.second)
                THEN greatest(-1.0, least(1.0, corr(r.first, r.second))) END AS rho
    FROM _split AS s
    LEFT JOIN _ranked AS r USING (circuit_id, split)
    GROUP BY ALL
),
_mean AS (SELECT circuit_id, CASE WHEN count(rho) = count(*) THEN avg(rho) END AS r FROM _rho GROUP BY circuit_id),
_factor AS (SELECT w.circuit_id, w.n_folds, m.r, w.n_folds / w.size AS k FROM _whole AS w LEFT JOIN _mean AS m USING (circuit_id))
SELECT r AS fold_correlation, CASE WHEN 1 + (k - 1) * r > 1e-9 THEN k * r / (1 + (k - 1) * r) END AS reliability, n_folds
FROM _factor;
COMMENT ON MACRO TABLE reliability IS 'How a circuit agrees with itself: fold_correlation is the mean Spearman''s rho of two halves of its folds over all splits, reliability the same stepped up by Spearman-Brown to all examples. NULL for fewer than two folds and, in DuckDB alone, for more than eight: `circuitdb sql` has no such limit.';

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
),
_rho AS (
    SELECT CASE WHEN min(first) < max(first) AND min(second) < max(second)
                THEN greatest(-1.0, least(1.0, corr(first, second))) END AS rho,
           count(*) AS n
    FROM _ranked
),
_limit AS (
    SELECT q._a = q._b AS itself,
           CASE WHEN x.reliability > 0 AND y.reliability > 0 THEN sqrt(x.reliability * y.reliability) END AS ceiling
    FROM _asked AS q
    JOIN circuit AS cx ON cx.circuit_id = q._a
    JOIN circuit AS cy ON cy.circuit_id = q._b AND cy.graph_id = cx.graph_id,
    reliability(cx.circuit_id) AS x, reliability(cy.circuit_id) AS y
)
SELECT r.rho AS similarity, r.n AS n_edges, l.ceiling,
       CASE WHEN NOT l.itself THEN r.rho / l.ceiling WHEN r.rho / l.ceiling IS NOT NULL THEN 1.0 END AS corrected
FROM _rho AS r
LEFT JOIN _limit AS l ON true;
COMMENT ON MACRO TABLE similarity IS 'Spearman''s rho of the scores of circuits a and b; NULL where one is constant or their graphs differ. n_edges counts the edges that both have a score for. ceiling is the root of the product of their reliabilities, what rho could reach at most; NULL unless both are over 0. corrected is similarity / ceiling, and may be over 1.';
