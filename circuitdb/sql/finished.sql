-- question: Which circuits are stored already?
-- parameters:
--   $by_example: BOOLEAN, true for those alone that have the scores of single examples too
-- columns: spec_digest, circuit_id
SELECT spec_digest, circuit_id
FROM circuit
WHERE NOT $by_example OR circuit_id IN (SELECT circuit_id FROM example_score)
