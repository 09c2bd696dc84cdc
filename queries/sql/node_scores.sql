-- question: What is the score of every node of a circuit?
-- parameters:
--   $circuit: INTEGER, the circuit
-- columns: node, kind (input, head or mlp), layer (NULL for input), head (NULL where the node is no head), score (sum over its
--   outgoing edges; NULL where none has a score)
-- units: score in the circuit's metric (nats for kl), positive: ablating the node's edges raises the metric
SELECT node, kind, layer, head, score
FROM node_scores
WHERE circuit_id = $circuit
ORDER BY layer NULLS FIRST, head NULLS LAST
