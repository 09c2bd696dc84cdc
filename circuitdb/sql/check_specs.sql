-- question: Which circuits have a spec digest that is not that of their spec, or that another circuit has too; and which lack
--   the chat template that their spec names, or have another one under its digest?
-- columns: subject (the circuit), what, recorded, found
WITH specified AS (
    SELECT circuit_id::VARCHAR AS subject, spec_digest, spec FROM circuit
    UNION ALL
    SELECT 'hard circuit ' || hard_id, spec_digest, spec FROM imported_hard_circuit
)
SELECT subject, 'spec digest' AS what, spec_digest AS recorded, sha256(spec::VARCHAR) AS found
FROM specified
WHERE spec_digest <> sha256(spec::VARCHAR)
UNION ALL
SELECT string_agg(subject, ' and ' ORDER BY subject), 'one spec digest for several circuits', NULL, spec_digest
FROM specified
GROUP BY spec_digest
HAVING count(*) > 1
UNION ALL
SELECT c.circuit_id::VARCHAR, 'chat template', c.spec ->> 'chat_template', sha256(t.template)
FROM circuit AS c
LEFT JOIN chat_template AS t ON t.digest = c.spec ->> 'chat_template'
WHERE c.spec ->> 'chat_template' IS NOT NULL AND c.spec ->> 'chat_template' IS DISTINCT FROM sha256(t.template)
ORDER BY subject, what
