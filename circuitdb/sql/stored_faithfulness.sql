-- question: Which cuts of these circuits are run already?
-- parameters: none
-- columns: circuit_id, data_circuit_id, selection, share, answered (whether its answers were counted too)
SELECT circuit_id, data_circuit_id, selection, share, accuracy IS NOT NULL AS answered
FROM faithfulness
