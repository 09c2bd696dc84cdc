-- question: Is there a circuit of this number?
-- parameters: $circuit: INTEGER
SELECT circuit_id FROM circuit WHERE circuit_id = $circuit::BIGINT
