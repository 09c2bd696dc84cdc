-- question: What are this circuit's scores, in the order of its edges?
-- parameters:
--   $circuit: INTEGER, its id
-- columns: score
SELECT score
FROM edge_score
WHERE circuit_id = $circuit
ORDER BY edge_id
