-- question: Which circuits have other scores, folds or examples than their own row says?
-- columns: subject (the circuit), what, recorded, found
WITH score AS (
    SELECT circuit_id, count(*) AS n, count(*) - count(score) AS n_null, sum(edge_id)::BIGINT AS ids,
           min(edge_id) AS first, max(edge_id) AS last, count(*) FILTER (NOT isfinite(score)) AS n_odd
    FROM edge_score
    GROUP BY circuit_id
), by_fold AS (
    SELECT circuit_id, fold, count(*) AS n, min(edge_id) AS first, max(edge_id) AS last,
           count(*) FILTER (NOT isfinite(score)) AS n_odd
    FROM fold_score
    GROUP BY circuit_id, fold
), folds AS (
    SELECT circuit_id, count(*) AS n_folds, sum(n)::BIGINT AS n, min(first) AS first, max(last) AS last,
           sum(n_odd)::BIGINT AS n_odd
    FROM by_fold
    GROUP BY circuit_id
), examples AS (
    SELECT circuit_id, count(*) FILTER (used) AS n_used, count(*) FILTER (NOT used) AS n_unused
    FROM example
    GROUP BY circuit_id
)
SELECT c.circuit_id::VARCHAR AS subject, said.*
FROM circuit AS c
JOIN graph AS g USING (graph_id)
JOIN model AS m USING (model_id)
LEFT JOIN score AS s USING (circuit_id)
LEFT JOIN folds AS f USING (circuit_id)
LEFT JOIN examples AS e USING (circuit_id),
unnest([
    {what: 'edges, those of its graph', recorded: c.n_edges::BIGINT, found: g.n_edges::BIGINT},
    {what: 'graph, that of its model', recorded: c.graph_id::BIGINT, found: m.graph_id::BIGINT},
    {what: 'scores', recorded: c.n_edges::BIGINT, found: coalesce(s.n, 0)},
    {what: 'ids of its edges, their sum', recorded: c.n_edges::BIGINT * (c.n_edges - 1) // 2, found: s.ids},
    {what: 'first edge', recorded: 0, found: s.first::BIGINT},
    {what: 'last edge', recorded: c.n_edges::BIGINT - 1, found: s.last::BIGINT},
    {what: 'scores that are NULL', recorded: c.n_nonfinite::BIGINT, found: coalesce(s.n_null, 0)},
    {what: 'scores that are NaN or infinite', recorded: 0, found: coalesce(s.n_odd, 0) + coalesce(f.n_odd, 0)},
    {what: 'folds', recorded: c.n_folds::BIGINT, found: coalesce(f.n_folds, 0)},
    {what: 'scores of folds', recorded: c.n_folds::BIGINT * c.n_edges, found: coalesce(f.n, 0)},
    {what: 'last edge of its folds', recorded: CASE WHEN c.n_folds > 0 THEN c.n_edges::BIGINT - 1 END,
     found: f.last::BIGINT},
    {what: 'scored examples', recorded: CASE WHEN e.n_used IS NULL THEN NULL ELSE c.n_examples::BIGINT END,
     found: e.n_used},
    {what: 'skipped examples', recorded: CASE WHEN e.n_used IS NULL THEN NULL ELSE c.n_skipped::BIGINT END,
     found: e.n_unused}
]) AS of(said)
WHERE said.recorded IS DISTINCT FROM said.found
ORDER BY said.what, c.circuit_id
