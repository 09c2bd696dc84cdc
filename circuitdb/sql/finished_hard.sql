-- question: Which hard circuits are imported already?
-- parameters: none
-- columns: spec_digest, hard_id
SELECT spec_digest, hard_id
FROM imported_hard_circuit
