-- question: What is the digest of each circuit's scores, as it was when they were stored?
-- columns: circuit_id, score_digest
SELECT circuit_id, score_digest
FROM circuit
ORDER BY circuit_id
