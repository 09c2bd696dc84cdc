-- question: Which examples have scores of their own though they were not scored, or not a score for each edge?
-- columns: subject (the circuit and the example), what, recorded, found
WITH single AS (
    SELECT circuit_id, position, count(*) AS n, count(DISTINCT edge_id) AS n_edges, max(edge_id) AS last
    FROM example_score
    GROUP BY circuit_id, position
)
SELECT x.circuit_id || ' example ' || x.position AS subject, said.*
FROM single AS x
JOIN circuit AS c USING (circuit_id)
LEFT JOIN example AS e USING (circuit_id, position),
unnest([
    {what: 'is a scored example', recorded: 1, found: coalesce(e.used, false)::BIGINT},
    {what: 'scores', recorded: c.n_edges::BIGINT, found: x.n},
    {what: 'edges with a score or NULL', recorded: c.n_edges::BIGINT, found: x.n_edges},
    {what: 'last edge', recorded: c.n_edges::BIGINT - 1, found: x.last::BIGINT}
]) AS of(said)
WHERE said.recorded IS DISTINCT FROM said.found
ORDER BY x.circuit_id, x.position
