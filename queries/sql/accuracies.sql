-- question: How often is the model right on the questions of each of these circuits?
-- parameters:
--   $circuits: INTEGER[], the circuits
-- columns: circuit_id, value, stderr (NULL where all or none are right), n (questions), filter (how answers were read: greedy
--   where that is there, else the first)
-- units: value and stderr from 0 to 1
SELECT circuit_id, value, stderr, n, filter
FROM evaluation
WHERE list_contains($circuits, circuit_id) AND metric = 'accuracy' AND source = 'circuitdb' AND value IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY circuit_id ORDER BY coalesce(filter, '') <> 'greedy', filter) = 1
ORDER BY circuit_id
