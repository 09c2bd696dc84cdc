-- question: Which circuits have a spec digest that is not that of their spec, or that another circuit has too?
-- columns: subject (the circuit), what, recorded, found
SELECT circuit_id::VARCHAR AS subject, 'spec digest' AS what, spec_digest AS recorded, sha256(spec::VARCHAR) AS found
FROM circuit
WHERE spec_digest <> sha256(spec::VARCHAR)
UNION ALL
SELECT string_agg(circuit_id, ' and ' ORDER BY circuit_id), 'one spec digest for several circuits', NULL, spec_digest
FROM circuit
GROUP BY spec_digest
HAVING count(*) > 1
ORDER BY subject
