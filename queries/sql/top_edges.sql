-- question: Which edges of a circuit are the strongest?
-- parameters:
--   $circuit: INTEGER, the circuit
--   $n: INTEGER, how many edges
-- columns: place (from 1, by absolute score, ties by edge_id), edge, source, target, score, edge_id
-- units: score in the circuit's metric (nats for kl), positive: ablating the edge raises the metric
SELECT top.place, top.edge, e.source, e.target, top.score, top.edge_id
FROM top_edges($circuit, $n) AS top
JOIN circuit AS c ON c.circuit_id = $circuit
JOIN edge AS e ON e.graph_id = c.graph_id AND e.edge_id = top.edge_id
ORDER BY top.place
