-- question: Of which models are these circuits?
-- parameters:
--   $circuits: INTEGER[], the circuits
-- columns: model_id, model, revision, architecture, n_layers, n_heads, n_kv_heads, n_parameters, weights_digest (of the
--   weights as loaded; NULL for imported circuits), n_circuits
-- units: counts
SELECT m.model_id, m.name AS model, m.revision, m.architecture, m.n_layers, m.n_heads, m.n_kv_heads, m.n_parameters, m.weights_digest,
       count(*) AS n_circuits
FROM circuit AS c
JOIN model AS m USING (model_id)
WHERE list_contains($circuits, c.circuit_id)
GROUP BY ALL
ORDER BY m.model_id
