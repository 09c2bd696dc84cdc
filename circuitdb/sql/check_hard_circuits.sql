-- question: Which imported hard circuits have other edges than their own row says, or than their graph can have?
-- columns: subject (the hard circuit), what, recorded, found
WITH member AS (
    SELECT hard_id, count(*) AS n, count(DISTINCT edge_id) AS n_ids, min(edge_id) AS first, max(edge_id) AS last
    FROM hard_circuit_edge
    GROUP BY hard_id
)
SELECT 'hard circuit ' || h.hard_id AS subject, said.*
FROM imported_hard_circuit AS h
JOIN graph AS g USING (graph_id)
JOIN model AS m USING (model_id)
LEFT JOIN member AS e USING (hard_id)
LEFT JOIN circuit AS c ON c.circuit_id = h.circuit_id,
unnest([
    {what: 'edges', recorded: h.n_edges::BIGINT, found: coalesce(e.n, 0)},
    {what: 'different edges', recorded: h.n_edges::BIGINT, found: coalesce(e.n_ids, 0)},
    {what: 'edges that its graph does not have', recorded: 0,
     found: (coalesce(e.first, 0) < 0 OR coalesce(e.last, -1) >= g.n_edges)::BIGINT},
    {what: 'graph, that of its model', recorded: h.graph_id::BIGINT, found: m.graph_id::BIGINT},
    {what: 'graph, that of its soft circuit', recorded: h.graph_id::BIGINT,
     found: coalesce(c.graph_id, h.graph_id)::BIGINT}
]) AS of(said)
WHERE said.recorded IS DISTINCT FROM said.found
ORDER BY said.what, h.hard_id
