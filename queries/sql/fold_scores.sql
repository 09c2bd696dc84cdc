-- question: What is the score of every edge of these circuits over each fold of their examples alone?
-- parameters:
--   $circuits: INTEGER[], the circuits
--   $first, $last: INTEGER, the least and greatest of them, so that zone maps skip the rest of the table
-- columns: circuit_id, fold (from 0), edge_id, score (NULL where it was not finite); in any order
-- units: score in the circuit's metric (nats for kl), positive: ablating the edge raises the metric
SELECT circuit_id, fold, edge_id, score
FROM fold_score
WHERE circuit_id BETWEEN $first AND $last AND list_contains($circuits, circuit_id)
