-- question: Which graphs have other nodes or edges than their own row says, and which models another shape than their graph?
-- columns: subject, what, recorded, found
WITH nodes AS (
    SELECT graph_id, count(*) AS n, count(DISTINCT node_id) AS n_ids FROM node GROUP BY graph_id
), edges AS (
    SELECT graph_id, count(*) AS n, count(DISTINCT edge_id) AS n_ids, count(DISTINCT name) AS n_names, max(edge_id) AS last
    FROM edge
    GROUP BY graph_id
)
SELECT 'graph ' || g.graph_id AS subject, said.*
FROM graph AS g
LEFT JOIN nodes AS n USING (graph_id)
LEFT JOIN edges AS e USING (graph_id),
unnest([
    {what: 'nodes', recorded: g.n_nodes::BIGINT, found: coalesce(n.n, 0)},
    {what: 'different nodes', recorded: g.n_nodes::BIGINT, found: coalesce(n.n_ids, 0)},
    {what: 'edges', recorded: g.n_edges::BIGINT, found: coalesce(e.n, 0)},
    {what: 'different edges', recorded: g.n_edges::BIGINT, found: coalesce(e.n_ids, 0)},
    {what: 'different names of edges', recorded: g.n_edges::BIGINT, found: coalesce(e.n_names, 0)},
    {what: 'last edge', recorded: g.n_edges::BIGINT - 1, found: e.last::BIGINT}
]) AS of(said)
WHERE said.recorded IS DISTINCT FROM said.found
UNION ALL
SELECT 'model ' || m.model_id, said.*
FROM model AS m
JOIN graph AS g USING (graph_id),
unnest([
    {what: 'layers, those of its graph', recorded: m.n_layers::BIGINT, found: g.n_layers::BIGINT},
    {what: 'heads, those of its graph', recorded: m.n_heads::BIGINT, found: g.n_heads::BIGINT},
    {what: 'parallel blocks, as its graph', recorded: m.parallel::BIGINT, found: g.parallel::BIGINT}
]) AS of(said)
WHERE said.recorded IS DISTINCT FROM said.found
ORDER BY ALL
