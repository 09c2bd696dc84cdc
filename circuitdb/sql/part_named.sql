-- question: Is there a node or an edge of this name in the circuit's graph?
-- parameters:
--   $circuit: INTEGER, the circuit; NULL for any graph
--   $name: VARCHAR, the name
WITH graphs AS (SELECT DISTINCT graph_id FROM circuit WHERE $circuit::BIGINT IS NULL OR circuit_id = $circuit::BIGINT)
SELECT name FROM node SEMI JOIN graphs USING (graph_id) WHERE name = $name
UNION ALL
SELECT name FROM edge SEMI JOIN graphs USING (graph_id) WHERE name = $name
LIMIT 1
