-- question: What is the number of this note, now that it is written?
-- parameters:
--   $circuit: INTEGER, the circuit, or NULL
--   $node, $edge: VARCHAR, the name of a node or an edge, or NULL
--   $words: VARCHAR, what it says
INSERT INTO note (circuit_id, node, edge, text) VALUES ($circuit, $node, $edge, $words) RETURNING note_id
