-- question: Which questions of this circuit were left out, and why?
-- parameters:
--   $circuit: INTEGER, the circuit
-- columns: position (place in the order of the examples), clean (the prompt), answer, reason
-- units: none
SELECT position, clean, answer, reason
FROM example
WHERE circuit_id = $circuit AND NOT used
ORDER BY position
