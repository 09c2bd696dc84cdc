-- question: Which nodes, or edges, of the circuit's graph have names most like this one?
-- parameters:
--   $circuit: INTEGER, the circuit; NULL for any graph
--   $name: VARCHAR, the name
--   $kind: VARCHAR, node or edge
WITH graphs AS (SELECT DISTINCT graph_id FROM circuit WHERE $circuit::BIGINT IS NULL OR circuit_id = $circuit::BIGINT)
SELECT name FROM (
    SELECT name FROM node SEMI JOIN graphs USING (graph_id) WHERE $kind = 'node'
    UNION ALL
    SELECT name FROM edge SEMI JOIN graphs USING (graph_id) WHERE $kind = 'edge'
)
ORDER BY levenshtein(name, $name), name
LIMIT 20
